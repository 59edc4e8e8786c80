"""`compose-plans`: one plan of several kernels from the plans of a graph's pieces."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.partitioning.composition import compose
from cleave.passes.partitioning.piece import piece_of


@dataclass(frozen=True)
class ComposePlansPass(ModulePass):
    """
    Make one plan of the scheduled pieces of each graph that was cut into several.

    The pieces say by their attribute `kernel` how they are connected. What one kernel
    passes on to another becomes a tensor of the plan. Symbols of the graph are the same
    in all kernels, tile sizes are each kernel's own.

    Before:
        itgraph.plan @norm_0 [M, K, BM] where [BM = 16]
            (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, 1], f32>)
            attributes {kernel = {of = "norm", number = 0 : i64, ...}} { ... }
        itgraph.plan @norm_1 [M, K, BM] where [BM = 64]
            (%x: !algebra.tensor<[M, K], f16>, %r: !algebra.tensor<[M, 1], f32>)
            -> (!algebra.tensor<[M, K], f16>)
            attributes {kernel = {of = "norm", number = 1 : i64, ...}} { ... }
    After:
        itgraph.plan @norm [M, K, BM, BM_2] where [BM = 16, BM_2 = 64]
            (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f16>) {
          %r = itgraph.kernel (i_M = 0 to M ceildiv BM) ...
          %o = itgraph.kernel (i_M = 0 to M ceildiv BM_2)
              ins (%tx = %x[i_M * BM_2, 0] tile [BM_2, K],
                   %tr = %r[i_M * BM_2, 0] tile [BM_2, 1]) ...
          itgraph.return %o
        }
    """

    name = "compose-plans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pieces: dict[str, list[PlanOp]] = {}
        for plan in op.ops:
            if isinstance(plan, PlanOp) and (piece := _piece(plan)) is not None:
                pieces.setdefault(piece, []).append(plan)
        # All are composed before one is replaced: a failure changes nothing.
        composed = [(compose(plans), plans) for plans in pieces.values()]
        for whole, plans in composed:
            op.body.block.insert_op_before(whole, plans[0])
            for plan in plans:
                op.body.block.erase_op(plan)


def _piece(plan: PlanOp) -> str | None:
    """The name of the graph of which a plan is a piece."""
    try:
        piece = piece_of(plan)
    except ValueError as error:
        raise PassFailedException(str(error)) from error
    return piece.of if piece is not None else None
