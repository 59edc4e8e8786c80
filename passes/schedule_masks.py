"""`schedule-masks`: no iterations and no mask code where a mask decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass

from cleave.dialects.algebra.generators import Mask
from cleave.dialects.algebra.operator import GUARDED, Operator
from cleave.dialects.dims import Dim, maximum, minimum, names_of, substitute
from cleave.dialects.itgraph.attributes import RangeAttr
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import facts_at
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.tmap import Range
from cleave.dialects.tensor import TensorType
from cleave.passes.scheduling.tail_sharing import share_tails
from cleave.passes.scheduling.visibility import (
    FALSE,
    ZERO,
    gives_nothing_without,
    positive_range,
)


@dataclass(frozen=True)
class ScheduleMasksPass(ModulePass):
    """
    Bound each loop to the iterations in which its masks are true anywhere, and mark the
    masks and tails that only some iterations need, so that the others carry no code for
    them (`guarded`). A tail is masked once for all that read it.

    Where that leaves threadblocks with more iterations the higher an iterator of their
    kernel is, they are started in descending order (`descending`), so that no long one
    runs alone at the end.

    An iteration is left out only where it provably changes no state: masked terms are 0
    in a sum and -inf in a maximum. That is also so where all that is loaded lies beyond
    the end of a tensor, as in the last part of a dim that was split into chunks.

    Before:
        %l = itgraph.loop (i_L = 0 to L ceildiv BL) ... {
          %seen = algebra.causal diagonal i_M * BM - i_L * BL
              : !algebra.tensor<[BM, BL], i1>
          %s1 = algebra.select %seen, %s, %least : !algebra.tensor<[BM, BL], f32>
    After:
        %l = itgraph.loop (i_L = 0 to min(L, i_M * BM + BM) ceildiv BL) ... {
          %seen = algebra.causal diagonal i_M * BM - i_L * BL
              : !algebra.tensor<[BM, BL], i1>
          %s1 = algebra.select %seen, %s, %least {guarded}
              : !algebra.tensor<[BM, BL], f32>
    """

    name = "schedule-masks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for level in op.walk():
            if isinstance(level, LoopOp):
                schedule_masks(level)
        for level in op.walk():
            if isinstance(level, KernelOp):
                share_tails(level.body.block)
                start_longest_first(level)


def schedule_masks(loop: LoopOp) -> None:
    """Do it for one loop, in place."""
    share_tails(loop.body.block)
    ops = [op for op in loop.body.block.ops if isinstance(op, Operator)]
    for op in ops:
        if isinstance(op, Mask) and gives_nothing_without(loop, {op.out: FALSE}):
            _bound(loop, op.seen_when())
    for left, loaded in _loaded(loop).items():
        if gives_nothing_without(loop, dict.fromkeys(loaded, ZERO)):
            _bound(loop, [left])
    for op in ops:
        dims = op.clear_when()
        if dims is not None and any(loop.range.iterator in names_of(d) for d in dims):
            op.attributes[GUARDED] = UnitAttr()


def _loaded(loop: LoopOp) -> dict[Dim, list[SSAValue]]:
    """
    The tiles that a loop loads from a part of a tensor that may reach beyond its end,
    by how many positions the tensor has from the tile on. Beyond its end are zeros.
    """
    facts = facts_at(loop)
    found: dict[Dim, list[SSAValue]] = {}
    for argument, view in zip(loop.view_arguments, loop.views, strict=True):
        outer = view.source.owner
        if not isinstance(outer, Block) or not isinstance(
            kernel := outer.parent_op(), KernelOp
        ):
            continue
        around = kernel.views[cast(BlockArgument, view.source).index]
        extents = cast(TensorType, around.source.type).dims
        gathers = {*around.tmap.gathers, *view.tmap.gathers}
        for dim, extent in enumerate(extents):
            first, offset = around.tmap.offsets[dim], view.tmap.offsets[dim]
            if (
                loop.range.iterator in names_of(offset)
                and dim not in gathers
                and not facts.at_most(first + around.tmap.tile[dim], extent)
            ):
                found.setdefault(extent - first - offset, []).append(argument)
    return found


def _bound(loop: LoopOp, dims: list[Dim]) -> None:
    """
    Leave out the iterations in which one of the dims is not positive, but for one.

    A threadblock that has nothing to do runs it, which changes nothing: the loop is
    also where kernels wait for what was loaded before it.
    """
    range_ = loop.range
    lo, hi = range_.lo, range_.hi
    for dim in dims:
        first, end = positive_range(dim, range_.iterator)
        lo = lo if first is None else maximum(lo, first)
        hi = hi if end is None else minimum(hi, end)
    facts = facts_at(loop)
    if not facts.at_most(lo, range_.hi - 1):
        lo = minimum(lo, range_.hi - 1)
    if not facts.at_most(lo + 1, hi):
        hi = maximum(hi, lo + 1)
    bounded = Range(range_.iterator, facts.simplify(lo), facts.simplify(hi))
    loop.iterators = ArrayAttr([RangeAttr(bounded)])


def start_longest_first(kernel: KernelOp) -> None:
    """Set `descending` to the iterators by which the kernel's loops become longer."""
    loops = [op for op in kernel.walk() if isinstance(op, LoopOp)]
    found = [
        StringAttr(range_.iterator)
        for range_ in kernel.ranges
        if any(_grows(loop, range_, kernel) for loop in loops)
    ]
    if found:
        kernel.attributes["descending"] = ArrayAttr(found)


def _grows(loop: LoopOp, over: Range, kernel: KernelOp) -> bool:
    """
    Whether a loop has more iterations at the last value of an iterator than at 0, for
    the first and the last values of the kernel's others, and never fewer.
    """
    facts = facts_at(kernel)
    names = {*names_of(loop.range.extent)}
    others = [r for r in kernel.ranges if r is not over and r.iterator in names]
    grown: set[bool] = set()
    for ends in product(*((0, facts.resolve(r.hi) - 1) for r in others)):
        values = {r.iterator: end for r, end in zip(others, ends, strict=True)}
        first, final = (
            facts.resolve(substitute(loop.range.extent, {**values, over.iterator: end}))
            for end in (0, facts.resolve(over.hi) - 1)
        )
        if not isinstance(first, int) or not isinstance(final, int) or final < first:
            return False
        grown.add(final > first)
    return True in grown
