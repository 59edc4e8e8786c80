"""
Which tiles of a planned kernel are on chip at the same time.

In SMEM a tile lives from the statement that first touches it to the last, and what a
loop touches lives as long as the loop: by this TileLang gives tiles the same bytes. In
registers a tile that dies where another is computed elementwise is overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import GUARDED, Operator
from cleave.dialects.itgraph.kernel import KernelOp, YieldOp
from cleave.dialects.itgraph.level import Level, memory_of
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.memory import Space
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.tensor import TensorType
from cleave.passes.cost.closed_forms import (
    RegisterPoint,
    RegisterTile,
    SharedBuffer,
    product,
)
from cleave.passes.cost.columns import Dims, summed_by_columns
from cleave.passes.cost.origin import Origin


def is_number(value: SSAValue) -> bool:
    """Whether a value is computed from numbers and sizes alone: it takes no place."""
    owner = value.owner
    if not isinstance(owner, Operator):
        return False
    if not owner.operands:
        return isinstance(owner, Constant)
    scalar = all(dim == 1 for dim in owner.result_type.dims)
    return owner.ELEMENTWISE and scalar and all(map(is_number, owner.operands))


def is_written_in_place(op: Operator) -> bool:
    """
    Whether the emission makes an operator a part of its reader's expression, so that
    its result never is a tile.
    """
    return is_number(op.results[0]) or is_part_of_reader(op)


def _is_generated(op: Operator) -> bool:
    """Whether a result follows from positions, as a mask does, or is a view of one."""
    owner = op.operands[0].owner if op.operands else None
    is_view = op.IS_VIEW and isinstance(owner, Operator) and _is_generated(owner)
    return is_view or not op.operands


def is_part_of_reader(op: Operator) -> bool:
    """Whether a result that need not be a number is written where it is read."""
    if _is_generated(op):
        return True
    if not (op.ELEMENTWISE or op.IS_VIEW) or isinstance(op, Copy):
        return False
    user = op.results[0].get_user_of_unique_use()
    if user is None or GUARDED in op.attributes:
        return False
    if user.parent_block() is not op.parent_block():
        return False
    if isinstance(user, NextOp):
        return not op.ONLY_ROUNDS
    if not isinstance(user, Operator):
        return False
    if isinstance(user, Copy):
        return op.ONLY_ROUNDS
    same_tile = user.result_type.dims == op.result_type.dims
    return same_tile and user.ELEMENTWISE and not user.REPEATS_OPERAND


def _is_swizzled(value: SSAValue) -> bool:
    memory = memory_of(value)
    return memory is not None and memory.layout == "swizzled"


def _is_in(value: SSAValue, space: Space) -> bool:
    memory = memory_of(value)
    return memory is not None and memory.space == space


def bytes_of(value: SSAValue) -> int:
    return element_bytes(cast(TensorType, value.type).element_type)


################################################################################
# SMEM                                                                         #
################################################################################


def shared_buffers(kernel: KernelOp, dims: Dims) -> tuple[SharedBuffer, ...]:
    """Every tile in SMEM, with the positions at which it is needed."""
    position = {op: index for index, op in enumerate(kernel.body.block.ops, start=1)}

    def at(op: Operation) -> int:
        while op not in position:
            op = cast(Operation, op.parent_op())
        return position[op]

    buffers: list[SharedBuffer] = []

    def add(value: SSAValue, is_staged: bool, first: int) -> None:
        last = max((at(user) for user in _users(value)), default=first)
        stored = [isinstance(use.operation, YieldOp) for use in value.uses]
        buffers.append(
            SharedBuffer(
                dims(value),
                bytes_of(value),
                is_staged,
                stored == [True] and isinstance(value.owner, Copy),
                _is_swizzled(value),
                first,
                max(first, last),
                Origin(value),
            )
        )

    for op in kernel.walk():
        if isinstance(op, Level):
            first = 0 if op is kernel else at(op)
            loops = [inner for inner in op.body.block.ops if isinstance(inner, LoopOp)]
            for argument, source in zip(op.view_arguments, op.sources, strict=True):
                if _is_in(argument, "smem") and not _is_in(source, "smem"):
                    add(argument, op is not kernel and not loops, first)
        elif isinstance(op, Copy) and op.params["memory"].space == "smem":
            add(op.results[0], False, at(op))
    return tuple(buffers)


def _users(value: SSAValue) -> Iterable[Operation]:
    """What reads a tile, itself or a part of it that an inner level slices."""
    for use in value.uses:
        user = use.operation
        yield user
        if isinstance(user, Level) and use.index in _source_positions(user):
            part = user.view_arguments[_source_positions(user).index(use.index)]
            yield from _users(part)


def _source_positions(level: Level) -> list[int]:
    first = len(level.operands) - len(level.indices) - len(level.tables)
    return list(range(first - len(level.sources), first))


################################################################################
# Registers                                                                    #
################################################################################


def register_points(kernel: KernelOp, dims: Dims) -> tuple[RegisterPoint, ...]:
    """What is live in registers at each point, without points that others exceed."""
    walk = _RegisterWalk(dims)
    walk.block(kernel.body.block, Counter())
    points = [Counter(dict(_sorted(point))) for point in walk.points]
    largest = [
        point
        for point in points
        if not any(point != other and point <= other for other in points)
    ]
    return tuple(tuple(point.items()) for point in largest)


_Point = frozenset[tuple[RegisterTile, int]]


def _sorted(point: _Point) -> RegisterPoint:
    return tuple(sorted(point, key=lambda item: str(item[0])))


@dataclass
class _RegisterWalk:
    dims: Dims
    points: dict[_Point, None] = field(default_factory=dict[_Point, None])
    tiles: dict[SSAValue, RegisterTile | None] = field(
        default_factory=dict[SSAValue, RegisterTile | None]
    )

    def block(self, block: Block, around: Counter[RegisterTile]) -> None:
        """Record the points of a block, `around` being live through all of it."""
        ops = list(block.ops)
        last = {value: index for index, op in enumerate(ops) for value in _reads(op)}
        for value in _arguments(block):
            last.setdefault(value, 0)
        live = {value for value in _arguments(block) if self._tile(value)}
        for index, op in enumerate(ops):
            born = {value for value in op.results if self._takes_registers(value)}
            dead = {value for value in live if last.get(value, index) <= index}
            if isinstance(op, LoopOp):
                through = self._count(live - set(op.initials))
                self._keep_columns(op)
                states = self._count(op.state_arguments)
                self.block(op.body.block, around + through + states)
            # A matmul reads its operands while it writes its result; an elementwise
            # operator is done with an element when it has computed it.
            is_exclusive = isinstance(op, Operator) and op.ON_TENSOR_CORES
            before = live | born if is_exclusive else live
            self._record(around + self._count(before))
            live = (live - dead) | born
            self._record(around + self._count(live))

    def _keep_columns(self, loop: LoopOp) -> None:
        for index, state in enumerate(loop.state_arguments):
            reduction = summed_by_columns(loop, index, self.dims)
            if reduction is not None:
                elements = product(self.dims(reduction.operands[0]))
                self.tiles[state] = RegisterTile(
                    elements, bytes_of(state), "all", Origin(state)
                )

    def _takes_registers(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Operator) and (
            is_written_in_place(owner)
            or _accumulates(owner)
            or _joins(owner)
            or _streams(owner)
        ):
            return False
        return self._tile(value) is not None

    def _tile(self, value: SSAValue) -> RegisterTile | None:
        if value not in self.tiles:
            self.tiles[value] = self._new_tile(value)
        return self.tiles[value]

    def _new_tile(self, value: SSAValue) -> RegisterTile | None:
        if not _is_in(value, "rmem") or is_number(value):
            return None
        dims = self.dims(value)
        memory = memory_of(value)
        is_fragment = memory is not None and memory.layout == "fragment"
        is_vector = sum(dim != 1 for dim in dims) < 2
        spread = "rows" if is_vector and is_fragment else "all"
        return RegisterTile(product(dims), bytes_of(value), spread, Origin(value))

    def _count(self, values: Iterable[SSAValue]) -> Counter[RegisterTile]:
        held = set(values)
        # What only rounds a tile is scheduled behind all else that reads the tile.
        tiles = [self._tile(value) for value in held if _rounded(value) not in held]
        return Counter(tile for tile in tiles if tile is not None)

    def _record(self, live: Counter[RegisterTile]) -> None:
        self.points[frozenset(live.items())] = None


def _rounded(value: SSAValue) -> SSAValue | None:
    """The tile of which a value is only a rounding."""
    owner = value.owner
    if isinstance(owner, Operator) and owner.ONLY_ROUNDS:
        return owner.operands[0]
    return None


def _arguments(block: Block) -> list[BlockArgument]:
    """Views in registers; the states of a loop are counted around it."""
    level = cast(Level, block.parent_op())
    return list(level.view_arguments)


def _reads(op: Operation) -> Iterable[SSAValue]:
    """The tiles that an operation reads, through what is written in its place."""
    operands = list(op.operands)
    if isinstance(op, Operator) and is_written_in_place(op):
        return
    if isinstance(op, LoopOp):
        operands += [v for inner in op.body.walk() for v in inner.operands]
    while operands:
        value = operands.pop()
        owner = value.owner
        if isinstance(owner, Operator) and is_written_in_place(owner):
            operands += owner.operands
        else:
            yield value


def given_state(op: Operator) -> tuple[LoopOp, int] | None:
    """The loop and the number of its state that alone is given an operator's result."""
    user = op.results[0].get_user_of_unique_use()
    if not isinstance(user, NextOp):
        return None
    return cast(LoopOp, user.parent_op()), list(user.values).index(op.results[0])


def _accumulates(op: Operator) -> bool:
    """Whether a reduction adds to a loop's state, so that its result is no new tile."""
    if op.REDUCTION is None or (given := given_state(op)) is None:
        return False
    loop, index = given
    return loop.states[index].kind == op.REDUCTION


def _joins(op: Operator) -> bool:
    """Whether a reduction adds to the tile of another one: `a @ b + c @ d`."""
    (result,) = op.results
    user = result.get_user_of_unique_use()
    if op.REDUCTION is None or not isinstance(user, Operator):
        return False
    if user.COMBINES != op.REDUCTION or user.parent_block() is not op.parent_block():
        return False
    others = [value for value in user.operands if value is not result]
    if len(others) != 1 or not others[0].has_one_use():
        return False
    owner = others[0].owner
    if not isinstance(owner, Operator) or owner.REDUCTION is None:
        return False
    return owner.is_before_in_block(op)


def _streams(op: Operator) -> bool:
    """
    Whether a tile comes from SMEM element by element and goes into a sum or maximum
    likewise: ptxas then never holds all of it.
    """
    user = op.results[0].get_user_of_unique_use()
    if not isinstance(user, Operator) or user.parent_block() is not op.parent_block():
        return False
    is_read = all(_is_in(v, "smem") or _is_streamed(v) for v in op.operands)
    is_element = isinstance(op, Copy) or op.ELEMENTWISE
    goes_on = user.REDUCTION is not None and not user.ON_TENSOR_CORES
    return is_read and is_element and (goes_on or _streams(user))


def _is_streamed(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operator):
        return False
    is_element = isinstance(owner, Copy) or owner.ELEMENTWISE
    operands = owner.operands
    return is_element and all(_is_in(v, "smem") or _is_streamed(v) for v in operands)
