"""Building the loop that computes a group of reductions tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.contraction import LOWEST
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import IDENTITY, Operator
from cleave.dialects.dims import Dim, ceildiv, symbol
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.parts import Contribution, State, View, entry_block
from cleave.dialects.itgraph.tmap import Range, TMap
from cleave.dialects.tensor import TensorType
from cleave.passes.scheduling.propagation import (
    AxisRange,
    NoTileError,
    full_ranges,
    operand_tmaps,
)
from cleave.passes.scheduling.references import (
    RunningReference,
    as_maximum,
    depending_on,
    factors,
    latest,
)
from cleave.passes.scheduling.tails import (
    masked_operands,
    reaches_end,
    reduction_of,
    source_reaches_end,
)
from cleave.passes.scheduling.waves import IterableReduction

Tile: TypeAlias = tuple[SSAValue, TMap]
"""A part of a value of the level; its tmap is relative to that value."""


@dataclass
class LoopBuilder:
    """
    One loop over the common dim of `group`, with all that depends on its iterator.

    What does not depend on the iterator is used from outside. A producer that is needed
    inside and outside is cloned, never moved. A reference over the same dim becomes a
    running value that the loop carries (`RunningReference`).
    """

    block: Block
    group: Sequence[IterableReduction]
    iterator: str
    size: Dim
    facts: Facts
    references: Sequence[RunningReference] = ()
    demands: dict[SSAValue, list[TMap]] = field(
        default_factory=dict[SSAValue, list[TMap]]
    )
    tiles: dict[Tile, SSAValue] = field(default_factory=dict[Tile, SSAValue])
    varying: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that a running reference makes vary from one iteration to the next."""

    @property
    def extent(self) -> Dim:
        return self.group[0].extent

    @property
    def step(self) -> AxisRange:
        """The part of the reduced dim that one iteration covers."""
        return AxisRange(symbol(self.iterator) * self.size, self.size)

    def build(self) -> tuple[list[Operation], LoopOp]:
        """
        The initial values and the loop; its results are the references' and then the
        group's, in order.

        Raises PassFailedException where two paths disagree on a computed value's tile.
        """
        running = [reference.op for reference in self.references]
        members = [reduction.op for reduction in self.group]
        self.varying = depending_on(running, self.block)
        for op in reversed(list(self.block.ops)):
            if isinstance(op, Operator):
                self._propagate(op, op in members or op in running)
        initials = [self._initial(op) for op in (*running, *members)]
        views = [
            View(value, tmap, name=value.name_hint)
            for value in self._sliced_values()
            for tmap in self.demands[value]
        ]
        states = [
            State(
                "carry" if op in running else reduction_of(op),
                initial.out,
                name=_state_name(op),
            )
            for op, initial in zip((*running, *members), initials, strict=True)
        ]
        body = entry_block(views, states)
        for view, argument in zip(views, body.args[: len(views)], strict=True):
            self.tiles[view.source, view.tmap] = argument
        held = dict(zip(running, body.args[len(views) :], strict=False))
        given, rescales = self._compute(body, members, held, views)
        body.add_op(
            NextOp(
                [
                    Contribution(given[op], rescales.get(op))
                    for op in (*running, *members)
                ]
            )
        )
        range_ = Range(self.iterator, 0, ceildiv(self.extent, self.size))
        loop = LoopOp(range_, views, states, body)
        for op, result in zip((*running, *members), loop.results, strict=True):
            result.name_hint = op.results[0].name_hint
        return list(initials), loop

    def _sliced_values(self) -> list[SSAValue]:
        """What comes from outside in tiles, in the order in which it is used."""
        used = dict.fromkeys(v for op in self.block.ops for v in op.operands)
        return [v for v in used if v in self.demands and not self._is_computed_here(v)]

    # Demands

    def _is_computed_here(self, value: SSAValue) -> bool:
        owner = value.owner
        return isinstance(owner, Operation) and owner.parent_block() is self.block

    def _is_invariant(self, value: SSAValue, tmap: TMap) -> bool:
        whole = tmap.is_whole(cast(TensorType, value.type).dims)
        return whole and value not in self.varying

    def _propagate(self, op: Operator, is_reduced: bool) -> None:
        if is_reduced:
            self._demand_operands(op, TMap.whole(op.result_type.dims), [self.step])
            return
        for tmap in self.demands.get(op.results[0], ()):
            self._demand_operands(op, tmap, full_ranges(op.expression))

    def _demand_operands(
        self, op: Operator, tmap: TMap, reduced: list[AxisRange]
    ) -> None:
        for operand, needed in self._operand_tiles(op, tmap, reduced):
            if self._is_invariant(operand, needed):
                continue
            known = self.demands.setdefault(operand, [])
            if needed in known:
                continue
            if known and self._is_computed_here(operand) and not _is_leaf(operand):
                name = f"%{operand.name_hint}" if operand.name_hint else "a value"
                raise PassFailedException(
                    f"two paths disagree on the tile of {name} "
                    f"('{cast(Operator, operand.owner).name}' op): {known[0]} and, "
                    f"for '{op.name}' op, {needed}"
                )
            known.append(needed)

    def _operand_tiles(
        self, op: Operator, tmap: TMap, reduced: list[AxisRange]
    ) -> list[Tile]:
        try:
            tmaps = operand_tmaps(op.expression, tmap, reduced)
        except NoTileError as error:
            raise PassFailedException(f"'{op.name}' op: {error}") from error
        return list(zip(op.operands, tmaps, strict=True))

    # The body

    def _compute(
        self,
        body: Block,
        members: Sequence[Operator],
        held: Mapping[Operator, SSAValue],
        views: Sequence[View],
    ) -> tuple[dict[Operator, SSAValue], dict[Operator, SSAValue]]:
        """
        What an iteration gives to each reduction (to a reference, its new value), and
        the factors by which members of the group are rescaled.
        """
        given: dict[Operator, SSAValue] = {}
        rescales: dict[Operator, SSAValue] = {}
        for op in self.block.ops:
            if not isinstance(op, Operator):
                continue
            if op in members:
                given[op] = self._partial(op, body, views)
            elif op in held:
                seen = self._partial(op, body, views)
                given[op] = latest(held[op], seen, op.results[0].name_hint, body)
                self.tiles[op.results[0], TMap.whole(op.result_type.dims)] = given[op]
                if len(given.keys() & held.keys()) == len(held):
                    rescales = factors(body, self.references, members, held, given)
            else:
                self._compute_tiles(op, body)
        return given, rescales

    def _compute_tiles(self, op: Operator, body: Block) -> None:
        for tmap in self.demands.get(op.results[0], ()):
            tiles = self._operand_tiles(op, tmap, full_ranges(op.expression))
            operands = [self._tile(*tile) for tile in tiles]
            self.tiles[op.results[0], tmap] = self._add(op, operands, tmap, body)

    def _tile(self, value: SSAValue, tmap: TMap) -> SSAValue:
        if self._is_invariant(value, tmap):
            return value
        if (value, tmap) not in self.tiles:
            name = f"%{value.name_hint}" if value.name_hint else "a value"
            raise PassFailedException(
                f"{name} is needed in tiles of {tmap}, but a loop has computed it "
                "already; give the tiles of both reductions at once"
            )
        return self.tiles[value, tmap]

    def _add(
        self, op: Operator, operands: list[SSAValue], tmap: TMap, body: Block
    ) -> SSAValue:
        type_ = op.result_type.with_dims(tmap.tile)
        tile_op = op.at_tile(operands, type_, tmap.offsets)
        return self._named(tile_op, op, body)

    def _named(self, tile_op: Operator, op: Operator, body: Block) -> SSAValue:
        body.add_op(tile_op)
        tile_op.results[0].name_hint = op.results[0].name_hint
        return tile_op.results[0]

    def _partial(self, op: Operator, body: Block, views: Sequence[View]) -> SSAValue:
        """What one iteration gives to a reduction, its tail masked."""
        whole = TMap.whole(op.result_type.dims)
        operands = [
            self._tile(*tile) for tile in self._operand_tiles(op, whole, [self.step])
        ]
        if not self.facts.divides(self.size, self.extent):

            def ends(value: BlockArgument, dim: int) -> bool:
                if value.block is body:
                    return source_reaches_end(views[value.index].source, dim)
                return reaches_end(value, dim)

            limit = self.extent - self.step.offset
            operands = masked_operands(op, operands, limit, body, ends)
        if op.IS_REFERENCE:
            # The state that it is combined with is at least the lowest reference.
            return self._named(as_maximum(op, operands, op.result_type), op, body)
        return self._add(op, operands, whole, body)

    def _initial(self, op: Operator) -> Constant:
        identity = LOWEST if op.IS_REFERENCE else IDENTITY[reduction_of(op)]
        type_ = TensorType(op.result_type.dims, f32)
        constant = Constant(result_type=type_, value=identity)
        constant.out.name_hint = "zero" if identity == 0 else "least"
        return constant


def _is_leaf(value: SSAValue) -> bool:
    """A generator or a view of one: as many tiles of it as are needed cost nothing."""
    owner = value.owner
    return isinstance(owner, Operator) and not owner.operands


def _state_name(op: Operator) -> str | None:
    hint = op.results[0].name_hint
    return f"{hint}_acc" if hint else None
