"""`partition-split`: cut a graph with splits into a split and a combine kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.tensor import TensorType
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.grouping import grouped
from cleave.passes.superoptimize.superoptimize import EQUALS

REFUSED = "refused"
"""The attribute of a graph with the number of its candidates refused, by reason."""

_NAMES = ("split", "combine")


@dataclass(frozen=True)
class PartitionSplitPass(ModulePass):
    """
    Cut graphs with splits at the reductions over the parts (paper section 4).

    An operator's kernel is the number of such reductions on the longest path to it, the
    reduction itself included; a reference over the parts is taken in the kernel that
    sums over them. Each kernel becomes a graph, or several where results are not to be
    tiled alike; what is computed in one and used in another goes through memory as f32.
    The attribute `kernel` says which kernel of which graph it is, and what its inputs
    and results are: inputs and outputs of the whole, or results of earlier kernels.

    Refused, and counted by reason in the attribute `refused` of the original, are
    candidates in which a computed tensor that still has the dim of the parts would go
    through memory, and those with a matmul behind the split kernel. Graphs without
    splits stay as they are.

    Before:
        algebra.graph @rowsum_2 [M, K, s] where [s | K]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
          %0 = algebra.split %x dim 1 count s
          %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
          %2 = algebra.reduce_sum %1 dim 0 : !algebra.tensor<[1, M, 1], f32>
          %3 = algebra.reshape %2 to [M, 1] : !algebra.tensor<[M, 1], f32>
          algebra.return %3
        }
    After:
        algebra.graph @rowsum_2_split [M, K, s] where [s | K]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[s, M, 1], f32>)
            attributes {kernel = {of = "rowsum_2", number = 0 : i64, ...}} {
          %0 = algebra.split %x dim 1 count s
          %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
          algebra.return %1
        }
        algebra.graph @rowsum_2_combine [M, K, s] where [s | K]
            (%0: !algebra.tensor<[s, M, 1], f32>) -> (!algebra.tensor<[M, 1], f32>)
            attributes {kernel = {of = "rowsum_2", number = 1 : i64, ...}} {
          %1 = algebra.reduce_sum %0 dim 0 : !algebra.tensor<[1, M, 1], f32>
          %2 = algebra.reshape %1 to [M, 1] : !algebra.tensor<[M, 1], f32>
          algebra.return %2
        }
    """

    name = "partition-split"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refused: dict[str, Counter[str]] = {}
        replacements: list[tuple[GraphOp, list[GraphOp]]] = []
        for graph in op.ops:
            if isinstance(graph, GraphOp) and _splits_of(graph):
                partition = Partition(graph)
                reason = partition.refusal()
                if reason is None:
                    replacements.append((graph, partition.build()))
                    continue
                equals = graph.attributes.get(EQUALS)
                if not isinstance(equals, SymbolRefAttr):
                    raise PassFailedException(f"graph @{graph.graph_name}: {reason}")
                refused.setdefault(equals.string_value(), Counter())[reason] += 1
                replacements.append((graph, []))
        for graph, parts in replacements:
            op.body.block.insert_ops_before(parts, graph)
            op.body.block.erase_op(graph)
        for graph in op.ops:
            if isinstance(graph, GraphOp) and (counts := refused.get(graph.graph_name)):
                graph.attributes[REFUSED] = DictionaryAttr(
                    {
                        reason: IntegerAttr(number, i64)
                        for reason, number in sorted(counts.items())
                    }
                )


def _splits_of(graph: GraphOp) -> list[tuple[Dim, Dim]]:
    """The count and the part of every split in a graph."""
    splits: dict[tuple[Dim, Dim], None] = {}
    for op in graph.operators:
        if op.IS_VIEW and not op.KEEPS_ORDER:
            for index in op.expression.operands[0]:
                if len(index) == 2:
                    of_parts, within = sorted(index, key=lambda term: term.axis)
                    dims = op.result_type.dims
                    splits[dims[of_parts.axis], dims[within.axis]] = None
    return list(splits)


class Partition:
    """
    The kernels of one graph.

    Inputs, generators and views of them belong to no kernel: they cost nothing, and
    each kernel has its own.
    """

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        splits = _splits_of(graph)
        self.counts = {count for count, _ in splits}
        self.parts = {part for _, part in splits}
        self.numbers: dict[SSAValue, int] = {}
        self._counts: dict[SSAValue, tuple[int, int]] = {}
        """How many references and how many others lead to a value over the parts."""
        for op in graph.operators:
            self._number(op)
        self.kernels = 1 + max(self.numbers.values(), default=0)

    def _number(self, op: Operator) -> None:
        operands = [self._counts[v] for v in op.operands if v in self._counts]
        if not operands and (op.IS_VIEW or not op.operands):
            return
        over_parts = not op.IS_VIEW and not self.counts.isdisjoint(
            op.expression.reduced
        )
        references = max((n for n, _ in operands), default=0)
        others = max((n for _, n in operands), default=0)
        if over_parts and op.IS_REFERENCE:
            references += 1
        elif over_parts:
            others += 1
        (result,) = op.results
        self._counts[result] = (references, others)
        self.numbers[result] = max(references, others)

    def _crossing(self) -> list[SSAValue]:
        """The values that are computed in one kernel and used in another."""
        return [
            value
            for value, number in self.numbers.items()
            if any(
                isinstance(use.operation, Operator)
                and self.numbers[use.operation.results[0]] != number
                for use in value.uses
            )
        ]

    def refusal(self) -> str | None:
        """Why the graph cannot be cut, if it cannot."""
        for value in self._crossing():
            if not self.parts.isdisjoint(cast(TensorType, value.type).dims):
                return "a computed tensor crosses with the dim of the parts"
        for op in self.graph.operators:
            if op.ON_TENSOR_CORES and self.numbers[op.results[0]] > 0:
                return "a matmul behind the split kernel"
        return None

    def build(self) -> list[GraphOp]:
        """The kernels as graphs, in order."""
        steps: list[list[SSAValue]] = [[] for _ in range(self.kernels)]
        for value in [*self._crossing(), *self.graph.return_op.values]:
            if (number := self.numbers.get(value)) is not None:
                steps[number].append(value)
        equals = self.graph.attributes.get(EQUALS)
        return cut(
            self.graph,
            grouped(self.graph, steps),
            self.graph.graph_name,
            names=_NAMES,
            whole={} if equals is None else {EQUALS: equals},
        )
