"""Which of the values that are kept at one step are computed by one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.tensor import TensorType
from cleave.passes.partitioning.draft import Steps, computed_from, is_leaf, stored


def grouped(graph: GraphOp, steps: Steps) -> list[list[SSAValue]]:
    """
    The steps of a cut with each of them divided into what one kernel computes, in an
    order that can be run. The outputs of the graph are kept at the end.
    """
    found: list[list[SSAValue]] = []
    already: set[SSAValue] = set()
    for step in [*steps, list(graph.return_op.values)]:
        groups: list[list[_Computed]] = []
        values = dict.fromkeys(map(stored, step))
        new = [v for v in values if v not in already and not is_leaf(v)]
        for value in new:
            computed = _Computed(graph, value, set(already))
            for group in groups:
                shares = any(computed.sources & other.sources for other in group)
                if shares and all(map(computed.fits, group)):
                    group.append(computed)
                    break
            else:
                groups.append([computed])
        found += [[computed.value for computed in group] for group in groups]
        already.update(new)
    return found


class _Computed:
    """A value, and what it is computed from where some values are known."""

    def __init__(self, graph: GraphOp, value: SSAValue, known: set[SSAValue]) -> None:
        operators, operands = computed_from(graph, [value], known)
        self.graph = graph
        self.value = value
        self.known = known
        self.dims = [dim for dim in cast(TensorType, value.type).dims if dim != 1]
        self.sources = operands | {op.results[0] for op in operators if op.operands}
        self.reductions = _reductions(operators)
        self.on_tensor_cores = any(op.ON_TENSOR_CORES for op in operators)

    def fits(self, other: _Computed) -> bool:
        """
        Whether one kernel should compute both: they have the same dims, or one has only
        some of those of the other. If there are matmuls, then only to save reductions
        that are needed for both: columns can be divided where another kernel computes
        the row statistics.
        """
        if self.dims == other.dims:
            return True
        within = _is_within(self.dims, other.dims) or _is_within(other.dims, self.dims)
        if not within or not (self.on_tensor_cores or other.on_tensor_cores):
            return within
        if self.value in other.sources:
            return other.repeats(self)
        return self.repeats(other)

    def repeats(self, other: _Computed) -> bool:
        """Whether it takes reductions of the other one, even with that in memory."""
        known = self.known | {other.value}
        operators, _ = computed_from(self.graph, [self.value], known)
        return bool(_reductions(operators) & other.reductions)


def _reductions(operators: Iterable[Operator]) -> set[Operator]:
    return {op for op in operators if op.REDUCTION is not None}


def _is_within(dims: Sequence[Dim], others: Sequence[Dim]) -> bool:
    """Whether dims are some of the others, in their order."""
    remaining = iter(others)
    return all(dim in remaining for dim in dims)
