"""Rewrites of levels that are right for every shape and every schedule."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from cleave.dialects.itgraph.attributes import dims_inside
from cleave.dialects.itgraph.level import Level, facts_at, memory_of
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.operators import Copy, Tail
from cleave.dialects.itgraph.parts import Let, View
from cleave.dialects.itgraph.tmap import names_in


class DropUnusedViews(RewritePattern):
    """
    Transforms:
        %o = itgraph.kernel (b = 0 to B) let (n = %sizes[b])
            ins (%tq = %q[b, 0] tile [1, D], %tk = %k[n, 0] tile [1, D]) ...
    Into, where nothing uses %tk:
        %o = itgraph.kernel (b = 0 to B)
            ins (%tq = %q[b, 0] tile [1, D]) ...
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Level, rewriter: PatternRewriter, /) -> None:
        unused = [argument for argument in op.view_arguments if not argument.uses]
        views = [
            view
            for view, arg in zip(op.views, op.view_arguments, strict=True)
            if arg.uses
        ]
        lets = _used_lets(op, views)
        if not unused and len(lets) == len(op.lets):
            return
        level = op.with_views(views, lets)
        for argument in unused:
            rewriter.erase_block_argument(argument)
        rewriter.replace(op, level)


def _used_lets(level: Level, views: Sequence[View]) -> list[Let]:
    """The lets that bounds, offsets, those views, the body or other used lets name."""
    if not (lets := level.lets):
        return []
    names = {name for view in views for name in view.tmap.names}
    for op in level.walk():
        for key, attribute in (op.properties | op.attributes).items():
            if op is not level or key not in ("lookups", "tmaps"):
                names |= names_in(dims_inside(attribute))
    used: list[Let] = []
    for let in reversed(lets):
        if let.name in names:
            used.insert(0, let)
            names |= names_in(let.index)
    return used


class DropUnusedStates(RewritePattern):
    """
    Transforms:
        %l, %m = itgraph.loop (j = 0 to N)
            state (%lo = sum %l0, %mo = max %m0) {
          itgraph.next %p, %r
        }
    Into, where nothing uses %m:
        %l = itgraph.loop (j = 0 to N)
            state (%lo = sum %l0) {
          itgraph.next %p
        }
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        arguments = op.state_arguments
        kept = [
            position
            for position, (result, argument) in enumerate(
                zip(op.finals, arguments, strict=True)
            )
            if result.uses or argument.uses
        ]
        # A loop of which nothing is used is dead code, and goes as a whole.
        if not kept or len(kept) == len(arguments):
            return
        states, contributions = op.states, op.contributions
        rewriter.replace(op.terminator, NextOp([contributions[i] for i in kept]))
        loop = op.rebuilt(op.views, op.lets, [states[i] for i in kept])
        for position, argument in enumerate(arguments):
            if position not in kept:
                rewriter.erase_block_argument(argument)
        results = dict(zip(kept, loop.finals, strict=True))
        rewriter.replace(op, loop, [results.get(i) for i in range(len(arguments))])


class UseWholeViewDirectly(RewritePattern):
    """
    Transforms:
        %a = itgraph.loop (j = 0 to N)
            ins (%x = %tq, %y = %gk[j, 0] tile [1, D]) ... {
          %s = algebra.mul %x, %y
    Into:
        %a = itgraph.loop (j = 0 to N)
            ins (%y = %gk[j, 0] tile [1, D]) ... {
          %s = algebra.mul %tq, %y

    A view that is placed in a memory of its own is a copy and stays.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        for view, argument in zip(op.views, op.view_arguments, strict=True):
            if view.is_whole and view.memory is None and argument.uses:
                rewriter.replace_all_uses_with(argument, view.source)


class DropLoopWithoutIterations(RewritePattern):
    """
    Transforms:
        %a = itgraph.loop (j = N to N) ... state (%ao = sum %a0) {...}
    Into:
        %a0
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        if facts_at(op).at_most(op.range.hi, op.range.lo):
            rewriter.replace(op, [], op.initials)


class DropTailWithinLimit(RewritePattern):
    """
    Transforms:
        %t = itgraph.tail %s dim 1 limit BL fill 0.0 : !algebra.tensor<[BM, BL], f32>
    Into:
        %s
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Tail, rewriter: PatternRewriter, /) -> None:
        size = op.result_type.dims[op.dim.value.data]
        if facts_at(op).at_most(size, op.limit.data):
            rewriter.replace(op, [], [op.source])


class DropCopyInPlace(RewritePattern):
    """
    Transforms:
        %d = itgraph.copy %c to smem<swizzled>
    Into, where %c already is in smem<swizzled>:
        %c
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Copy, rewriter: PatternRewriter, /) -> None:
        if memory_of(op.source) == op.memory.data:
            rewriter.replace(op, [], [op.source])
