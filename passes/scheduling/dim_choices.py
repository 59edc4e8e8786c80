"""
Which dims of a graph a schedule may divide: the choices behind its loop structures.

A dim goes by one symbol, its own or the largest of an expression (`M` of `G * M`, `L`
of `L floordiv s`), as tile sizes do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, SymbolicDim, evaluate, names_of
from cleave.dialects.tensor import TensorType

UNKNOWN = 2
"""Taken for the size of a symbol without a value."""


@dataclass
class DimUse:
    """How a graph uses the dims that go by one symbol."""

    dim: Dim
    """The dim, with numbers for what is bound; split counts may be left in it."""
    extent: int
    """Its size; the largest, if it is chosen among several."""
    least: int
    """The smallest."""
    is_batch: bool = False
    """A dim of an output before its last two."""
    is_output: bool = False
    """One of the last two dims of an output."""
    is_last: bool = False
    """The last dim of an output."""
    is_reduced: bool = False
    is_reduced_early: bool = False
    """Reduced along a dim before the last two of an operand."""
    is_row: bool = False
    """Reduced along the last dim of an operand."""
    is_behind: bool = False
    """The last dim of an operand that is reduced along another, so that rows are."""
    in_matmul: bool = False
    """Rows, columns or depth of a matmul."""
    is_depth: bool = False


@dataclass
class DimUses:
    """
    The uses of every symbol that a tile could be given for. `choices` are values for
    symbols without one: split counts, and chunks.
    """

    graph: GraphOp
    choices: Sequence[Mapping[str, int]] = ()
    uses: dict[str, DimUse] = field(default_factory=dict[str, DimUse])

    def __post_init__(self) -> None:
        binding = self.graph.facts.binding
        self.sizes: dict[str, int] = {
            name: max(choice[name] for choice in self.choices)
            for name in (self.choices[0] if self.choices else ())
        }
        self.sizes |= {
            name: size
            for name in self.graph.symbol_names
            if isinstance(size := binding.get(name), int)
        }
        for value in computed_outputs(self.graph):
            dims = _dims(_before_transposes(value))
            for position, dim in enumerate(dims, start=-len(dims)):
                if (use := self._use(dim)) is not None:
                    use.is_batch |= position < -2
                    use.is_output |= position >= -2
                    use.is_last |= position == -1
        for op in self.graph.operators:
            if op.REDUCTION is not None:
                self._add_reduction(op)

    def _add_reduction(self, op: Operator) -> None:
        expression = op.expression
        (extent,) = expression.reduced
        if (use := self._use(extent)) is not None:
            use.is_reduced = True
            use.in_matmul |= op.ON_TENSOR_CORES
            use.is_depth |= op.ON_TENSOR_CORES
            for indices in expression.operands:
                for position, index in enumerate(indices, start=-len(indices)):
                    reduced = any(term.axis >= expression.rank for term in index)
                    use.is_reduced_early |= reduced and position < -2
                    use.is_row |= reduced and position == -1
        if not op.ON_TENSOR_CORES:
            (operand,) = op.operand_types
            if (use := self._use(operand.dims[-1])) is not None:
                use.is_behind |= operand.dims[-1] != extent
        if op.ON_TENSOR_CORES:
            for dim in op.result_type.dims[-2:]:
                if (use := self._use(dim)) is not None:
                    use.in_matmul = True

    def _use(self, dim: Dim) -> DimUse | None:
        name = self.symbol_of(dim)
        if name is None:
            return None
        if name not in self.uses:
            resolved = self.graph.facts.resolve(dim)
            extents = [self._size(name)]
            if isinstance(resolved, int):
                extents = [resolved]
            elif self.choices and names_of(resolved) <= self.choices[0].keys():
                extents = [evaluate(resolved, choice) for choice in self.choices]
            self.uses[name] = DimUse(resolved, max(extents), min(extents))
        return self.uses[name]

    def symbol_of(self, dim: Dim) -> str | None:
        """The symbol that a dim goes by; None for a number."""
        if not isinstance(dim, SymbolicDim):
            return None
        return max(sorted(dim.names), key=self._size)

    def _size(self, name: str) -> int:
        return self.sizes.get(name, UNKNOWN)


def computed_outputs(graph: GraphOp) -> list[SSAValue]:
    """What a kernel computes: outputs without the views through which they leave."""
    return list(dict.fromkeys(_computed(v, graph) for v in graph.return_op.values))


def _computed(value: SSAValue, graph: GraphOp) -> SSAValue:
    owner = value.owner
    while isinstance(owner, Operator) and owner.KEEPS_ORDER and _leaves(value, graph):
        value = owner.operands[0]
        owner = value.owner
    return value


def _leaves(value: SSAValue, graph: GraphOp) -> bool:
    """Whether only returns and views that are returned use a value."""
    return all(
        user is graph.return_op
        or (
            isinstance(user, Operator)
            and user.KEEPS_ORDER
            and _leaves(user.results[0], graph)
        )
        for user in _users(value)
    )


def _users(value: SSAValue) -> Iterator[object]:
    for use in value.uses:
        yield use.operation


def _before_transposes(value: SSAValue) -> SSAValue:
    """
    What an output is element by element, before its dims were brought in another order:
    there rows and columns are those of a matmul.
    """
    found = current = value
    while isinstance(owner := current.owner, Operator):
        if owner.IS_VIEW and not owner.KEEPS_ORDER:
            found = current = owner.operands[0]
        elif owner.ELEMENTWISE:
            same = [v for v in owner.operands if _dims(v) == _dims(current)]
            if not same:
                break
            current = same[0]
        else:
            break
    return found


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return cast(TensorType, value.type).dims
