"""`partition-reductions`: add the worthwhile cuts of a graph at its reductions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, SymbolRefAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.equal_graphs import EQUALS, named_by, symbol_names
from cleave.passes.option_ranges import Range
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.piece import KERNEL
from cleave.passes.partitioning.reduction_cuts import ReductionCut, ReductionCuts
from cleave.passes.partitioning.splits import splits_of
from cleave.passes.pass_warnings import warn
from cleave.passes.scheduling.tiles import fresh_name

CUTS = "cuts"
"""The entry of a piece's description that names the graph that was cut."""
TRAFFIC = "traffic"
"""The entry with the bytes that all pieces read and write, each operand once."""
UNFUSED = "unfused"
"""The entry that marks the pieces with one kernel an operator group."""


@dataclass(frozen=True)
class PartitionReductionsPass(ModulePass):
    """
    Add to each graph the worthwhile ways to compute it in several kernels (beyond the
    paper, which cuts at splits only).

    Between some of the reductions and the others lie elementwise operators; the graph
    is cut there at the values that move the fewest bytes, or right in front of matmuls,
    so that these have no computed operands. Pieces compute anew what is cheaper to
    compute than to keep. `limit` cuts are added, those that move the fewest bytes
    first, none that moves more than both the unfused graph and twice as much as the
    graph as it is.

    With `unfused`, one kernel an operator group is added as well: every matmul alone,
    and every other reduction with the elementwise operators around it.

    The attribute `kernel` of a piece gives its place in its cut, and which graph was
    cut (`cuts`). The graph itself stays; graphs with splits, pieces and graphs that are
    cut already are left alone.

    Before:
        algebra.graph @norm [M, K, N]
            (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
            -> (!algebra.tensor<[M, N], f16>) {
          %xx = algebra.square %x : !algebra.tensor<[M, K], f32>
          %sum = algebra.reduce_sum %xx dim 1 : !algebra.tensor<[M, 1], f32>
          %rms = algebra.sqrt %sum : !algebra.tensor<[M, 1], f32>
          %y = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>
          %o = algebra.div %y, %rms : !algebra.tensor<[M, N], f32>
          algebra.return %o
        }
    After (besides @norm):
        algebra.graph @norm_cut1_0 [M, K, N]
            (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, 1], f32>)
            attributes {kernel = {of = "norm_cut1", number = 0 : i64, ...}} {
          %xx = algebra.square %x : !algebra.tensor<[M, K], f32>
          %sum = algebra.reduce_sum %xx dim 1 : !algebra.tensor<[M, 1], f32>
          %rms = algebra.sqrt %sum : !algebra.tensor<[M, 1], f32>
          algebra.return %rms
        }
        algebra.graph @norm_cut1_1 [M, K, N]
            (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>,
             %rms: !algebra.tensor<[M, 1], f32>) -> (!algebra.tensor<[M, N], f16>)
            attributes {kernel = {of = "norm_cut1", number = 1 : i64, ...}} {
          %y = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>
          %o = algebra.div %y, %rms : !algebra.tensor<[M, N], f32>
          algebra.return %o
        }
    """

    name = "partition-reductions"

    limit: Annotated[int, Range(0)] = 8
    unfused: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = symbol_names(op)
        already = {named_by(each, CUTS) for each in op.ops}
        whole = [g for g in op.ops if isinstance(g, GraphOp) and _is_whole(g)]
        if again := [f"@{g.graph_name}" for g in whole if g.graph_name in already]:
            warn(self.name, f"cut already, and not cut again: {', '.join(again)}")
        for graph in whole:
            if graph.graph_name in already:
                continue
            pieces = [piece for found in self._cuts(graph, taken) for piece in found]
            op.body.block.insert_ops_after(pieces, graph)

    def _cuts(self, graph: GraphOp, taken: set[str]) -> Iterator[list[GraphOp]]:
        """The pieces of each cut, with names that are not taken yet."""
        cuts = ReductionCuts(graph)
        most_traffic = 2 * cuts.none.traffic
        groups: ReductionCut | None = None
        try:
            groups = cuts.unfused()
            most_traffic = max(most_traffic, groups.traffic)
        except PassFailedException as error:
            warn(self.name, str(error))
        found = islice(cuts.by_traffic(most_traffic), self.limit)
        for number, each in enumerate(found, 1):
            yield pieces_of(each, f"{graph.graph_name}_cut{number}", taken=taken)
        if self.unfused and groups is not None and len(groups.drafts) > 1:
            name = f"{graph.graph_name}_unfused"
            yield pieces_of(groups, name, UNFUSED, taken=taken)


def pieces_of(
    found: ReductionCut, name: str, *marks: str, taken: set[str] | None = None
) -> list[GraphOp]:
    """
    The pieces of a cut as graphs that say what they are pieces of: the plan composed of
    them is called `name`, or similarly where that is taken, and has the marks as
    attributes. What the plan and the pieces are called becomes taken.
    """
    taken = set() if taken is None else taken
    name = fresh_name(name, taken)
    taken.add(name)
    graph = found.graph
    whole: dict[str, Attribute] = {
        CUTS: SymbolRefAttr(graph.graph_name),
        TRAFFIC: IntegerAttr(found.traffic, i64),
        **{mark: UnitAttr() for mark in marks},
    }
    if (equals := graph.attributes.get(EQUALS)) is not None:
        whole[EQUALS] = equals
    return cut(graph, found.steps, name, whole=whole, taken=taken)


def _is_whole(graph: GraphOp) -> bool:
    """Whether a graph is neither a piece nor has splits, at which others cut."""
    return KERNEL not in graph.attributes and not any(splits_of(graph))
