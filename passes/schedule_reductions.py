"""`schedule-reductions`: iterate the reductions of each kernel tile by tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, names_of
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, facts_at, levels_around
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import FactAttr
from cleave.passes.scheduling.loops import LoopBuilder
from cleave.passes.scheduling.references import running_references, write_out
from cleave.passes.scheduling.tiles import TileSizes, fresh_name, parse_tiles
from cleave.passes.scheduling.waves import (
    IterableReduction,
    horizontal_groups,
    iterable_reductions,
    last_wave,
)


@dataclass(frozen=True)
class ScheduleReductionsPass(ModulePass):
    """
    Iterative tiling and horizontal fusion (paper section 5.3, intra-threadblock).

    `tile` gives the tile size of each reduced dim that is iterated, by its symbol; a
    reduction that fits in its tile is left whole. The reductions with no other behind
    them become loops together with all that they are computed from; those that reduce
    one dim and share a producer become one loop. Repeated, also inside of the new
    loops, until every reduction is tiled. Where a tile size does not divide the dim,
    each reduction masks its tail with its own identity.

    With `only`, just the plan of that name is scheduled.

    Before:
        %p = algebra.exp %ts : !algebra.tensor<[BM, L], f32>
        %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[BM, 1], f32>
    After `schedule-reductions{tile="L=64"}`:
        %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
        %l = itgraph.loop (i_L = 0 to L ceildiv BL)
            ins (%ts_1 = %ts[0, i_L * BL] tile [BM, BL])
            state (%l_acc = sum %zero) {
          %p = algebra.exp %ts_1 : !algebra.tensor<[BM, BL], f32>
          %l_1 = algebra.reduce_sum %p dim 1 : !algebra.tensor<[BM, 1], f32>
          itgraph.next %l_1
        }
    """

    name = "schedule-reductions"

    tile: str = ""
    only: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tiles = parse_tiles(self.tile)
        plans = [
            plan
            for plan in op.ops
            if isinstance(plan, PlanOp) and self.only in (None, plan.plan_name)
        ]
        if self.only is not None and not plans:
            raise PassFailedException(f"there is no plan @{self.only}")
        # Every plan is scheduled before one is replaced: a failure changes nothing.
        scheduled = [schedule_reductions(plan, tiles) for plan in plans]
        for plan, new in zip(plans, scheduled, strict=True):
            Rewriter.replace_op(plan, new)


def schedule_reductions(plan: PlanOp, tiles: dict[str, int | None]) -> PlanOp:
    """
    A copy of `plan` with its reductions iterated.

    Raises:
        PassFailedException: a tile for an unknown symbol or for a dim that nothing
            reduces, or two paths that disagree on a value's tile.
    """
    plan = plan.clone()
    for name in tiles:
        if name not in plan.symbol_names:
            raise PassFailedException(
                f"tile for '{name}', which is no symbol of "
                f"@{plan.plan_name} (symbols: {', '.join(plan.symbol_names) or 'none'})"
            )
    schedule = _ReductionSchedule(plan, TileSizes(tiles, set(plan.symbol_names)), set())
    try:
        for op in plan.body.block.ops:
            if isinstance(op, KernelOp):
                schedule.tile_level(op.body.block)
    except VerifyException as error:
        raise PassFailedException(str(error)) from error
    if unused := [name for name in tiles if name not in schedule.reduced]:
        raise PassFailedException(
            f"tile for '{unused[0]}', "
            f"but @{plan.plan_name} reduces no dim of {unused[0]}"
        )
    plan.symbols = ArrayAttr(
        [*plan.symbols, *(StringAttr(name) for name in schedule.sizes.symbols)]
    )
    plan.where = ArrayAttr(
        [*plan.where, *(FactAttr(fact) for fact in schedule.sizes.facts)]
    )
    return plan


@dataclass
class _ReductionSchedule:
    """The state of scheduling one plan."""

    plan: PlanOp
    sizes: TileSizes
    reduced: set[str]
    """Symbols whose tiles have been looked for and met a reduction."""

    def tile_level(self, block: Block) -> None:
        """Make loops of a level's reductions, wave by wave, and go into each loop."""
        while group := self._next_group(block):
            self._make_loop(block, group)
        for op in list(block.ops):
            if isinstance(op, LoopOp):
                self.tile_level(op.body.block)
            elif isinstance(op, Operator) and op.IS_REFERENCE:
                write_out(op, block)

    def _next_group(self, block: Block) -> list[IterableReduction] | None:
        facts = facts_at(cast(Level, block.parent_op()))
        self.reduced |= reduced_symbols(block, self.sizes)
        wave = last_wave(iterable_reductions(block, self.sizes, facts))
        return horizontal_groups(wave, block)[0] if wave else None

    def _make_loop(self, block: Block, group: list[IterableReduction]) -> None:
        level = cast(Level, block.parent_op())
        around = [level, *levels_around(level)]
        taken = {name for outer in around for name in outer.own_names}
        iterator = fresh_name(f"i_{group[0].symbol}", taken | self.sizes.taken)
        size = self._size(group[0])
        facts = facts_at(level).extend(*self.sizes.facts)
        references = running_references(
            block, group, iterable_reductions(block, self.sizes, facts)
        )
        builder = LoopBuilder(block, group, iterator, size, facts, references)
        initials, loop = builder.build()
        computed = [*(r.op for r in references), *(r.op for r in group)]
        last = max(computed, key=lambda op: block.get_operation_index(op))
        block.insert_ops_after([*initials, loop], last)
        for op, result in zip(computed, loop.results, strict=True):
            op.results[0].replace_all_uses_with(result)
        erase_dead(block)
        sort_topologically(block)

    def _size(self, reduction: IterableReduction) -> Dim:
        return self.sizes.of(reduction.symbol)


def reduced_symbols(block: Block, sizes: TileSizes) -> set[str]:
    """The symbols with a tile size that occur in a dim reduced at this level."""
    return {
        name
        for op in block.ops
        if isinstance(op, Operator) and op.REDUCTION is not None
        for extent in op.expression.reduced
        for name in names_of(extent) & sizes.sizes.keys()
    }


def erase_dead(block: Block) -> None:
    """Erase operations whose results nobody uses, last first."""
    for op in reversed(list(block.ops)):
        unused = not any(result.uses for result in op.results)
        if op.results and unused and is_side_effect_free(op):
            block.erase_op(op)


def sort_topologically(block: Block) -> None:
    """Bring every operation behind those it uses, otherwise keeping the order."""
    placed: set[Operation] = set()
    order: list[Operation] = []

    def place(op: Operation) -> None:
        if op in placed:
            return
        placed.add(op)
        for inner in op.walk():
            for operand in inner.operands:
                owner = operand.owner
                if isinstance(owner, Operation) and owner.parent_block() is block:
                    place(owner)
        order.append(op)

    ops = list(block.ops)
    for op in ops:
        place(op)
    if order != ops:
        for op in ops:
            op.detach()
        block.add_ops(order)
