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
    i64,
)
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.tensor import TensorType
from cleave.passes.equal_graphs import (
    EQUALS,
    equals,
    have_candidates,
    symbol_names,
)
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.grouping import grouped
from cleave.passes.partitioning.piece import KERNEL
from cleave.passes.partitioning.splits import splits_of
from cleave.passes.specialize import TESTED
from cleave.passes.split_choices import CHOICES
from cleave.passes.superoptimize.superoptimize import VERIFIED

REFUSED = "refused"
"""The attribute of a graph with the number of its candidates refused, by reason."""

_NAMES = ("split", "combine")
_KEPT = (EQUALS, VERIFIED, TESTED)
"""What is known of a graph that holds for its kernels together."""


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
    splits stay as they are, as do pieces, and graphs that others equal: their copy
    among these is cut instead.

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
        taken, kept = symbol_names(op), have_candidates(op.ops)
        refused: dict[str, Counter[str]] = {}
        replacements: list[tuple[GraphOp, list[GraphOp]]] = []
        for graph in op.ops:
            if not isinstance(graph, GraphOp) or graph.graph_name in kept:
                continue
            if KERNEL in graph.attributes or not any(splits_of(graph)):
                continue
            partition = Partition(graph)
            reason = partition.refusal()
            if reason is None:
                replacements.append((graph, partition.build(taken)))
            elif (original := equals(graph)) in taken:
                refused.setdefault(original, Counter())[reason] += 1
                replacements.append((graph, []))
            else:
                raise PassFailedException(f"graph @{graph.graph_name}: {reason}")
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


class Partition:
    """
    The kernels of one graph.

    Inputs, generators and views of them belong to no kernel: they cost nothing, and
    each kernel has its own.
    """

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.counts: set[Dim] = set()
        self.parts: set[Dim] = set()
        for value, parts, within in splits_of(graph):
            dims = cast(TensorType, value.type).dims
            self.counts.add(dims[parts])
            self.parts.add(dims[within])
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

    def build(self, taken: set[str]) -> list[GraphOp]:
        """The kernels as graphs, in order, with names that are not taken yet."""
        steps: list[list[SSAValue]] = [[] for _ in range(self.kernels)]
        for value in [*self._crossing(), *self.graph.return_op.values]:
            if (number := self.numbers.get(value)) is not None:
                steps[number].append(value)
        attributes = self.graph.attributes
        pieces = cut(
            self.graph,
            grouped(self.graph, steps),
            self.graph.graph_name,
            names=_NAMES,
            whole={name: attributes[name] for name in _KEPT if name in attributes},
            taken=taken,
        )
        if (choices := self.graph.attributes.get(CHOICES)) is not None:
            for piece in pieces:
                piece.attributes[CHOICES] = choices
        return pieces
