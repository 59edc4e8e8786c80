"""Copies between memories: into SMEM for tensor cores and stores, between layouts."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import StringAttr, f32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.elementwise import Cast
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.kernel import KernelOp, YieldOp
from cleave.dialects.itgraph.level import Level
from cleave.dialects.itgraph.loop import NextOp
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.tensor import TensorType
from cleave.passes.memory.layouts import Layouts, reductions_behind

SWIZZLED = Memory("smem", "swizzled")
SHARED = Memory("smem", "linear")


def insert_copies(kernel: KernelOp, layouts: Layouts) -> None:
    """Make every movement that the operators of a kernel need explicit."""
    copies = _Copies()
    by_rows = kernel.attributes["warps"] == StringAttr("rows")
    for op in list(kernel.walk()):
        if isinstance(op, YieldOp):
            _stage_stores(op, layouts, copies)
        elif isinstance(op, Level) and op is not kernel:
            _share_sliced_tiles(op, copies)
        elif isinstance(op, NextOp):
            _bounce_rescales(op, layouts, copies)
        elif not isinstance(op, Operator):
            continue
        elif op.ON_TENSOR_CORES:
            _share_matmul_operands(op, by_rows, layouts, copies)
        elif op.REDUCTION is not None:
            _widen_reduced_operand(op)
        elif op.ELEMENTWISE and not isinstance(op, Copy):
            _bounce_vectors(op, layouts, copies)


class _Copies:
    """The copies made so far: one a value and memory, right behind the value."""

    def __init__(self) -> None:
        self.made: dict[tuple[SSAValue, Memory], SSAValue] = {}

    def of(self, value: SSAValue, memory: Memory) -> SSAValue:
        if (value, memory) not in self.made:
            copy = Copy(value, memory=memory)
            copy.results[0].name_hint = value.name_hint
            Rewriter.insert_op(copy, _behind(value))
            self.made[value, memory] = copy.results[0]
        return self.made[value, memory]


def _behind(value: SSAValue) -> InsertPoint:
    owner = value.owner
    if isinstance(owner, Operation):
        return InsertPoint.after(owner)
    return InsertPoint.at_start(owner)


def is_view(value: SSAValue) -> bool:
    """Whether a value is what a level loads, not what it computes."""
    if not isinstance(value, BlockArgument):
        return False
    level = value.block.parent_op()
    return isinstance(level, Level) and value.index < len(level.sources)


def is_shared(value: SSAValue) -> bool:
    """Whether a value is in SMEM: loaded for it, or copied there."""
    owner = value.owner
    if isinstance(owner, Operator) and owner.KEEPS_ORDER:
        return is_shared(owner.operands[0])
    return is_view(value) or (
        isinstance(owner, Copy) and owner.params["memory"].space == "smem"
    )


def _share_matmul_operands(
    op: Operator, by_rows: bool, layouts: Layouts, copies: _Copies
) -> None:
    for position, operand in enumerate(op.operands):
        # The tensor core takes only the left operand from registers, rows by columns,
        # and a warpgroup has in its registers only the rows that it computes itself.
        in_registers = (
            position == 0
            and by_rows
            and "transpose_lhs" not in op.params
            and layouts.get(operand) == "fragment"
        )
        if not in_registers and not is_shared(operand):
            op.operands[position] = copies.of(operand, SWIZZLED)


def _share_sliced_tiles(level: Level, copies: _Copies) -> None:
    for position, source in enumerate(level.sources):
        if not is_shared(source):
            level.operands[_first_source(level) + position] = copies.of(source, SHARED)


def _first_source(level: Level) -> int:
    return list(level.operands).index(level.sources[0])


def _widen_reduced_operand(op: Operator) -> None:
    """
    Sums and maxima of narrow elements are taken in f32, from registers. What threads
    have there is what later operators read as well: from SMEM, each thread may read
    other elements than its own, and TileLang lets it compute whole rows for a vector
    that it got from a reduction.
    """
    (operand,) = op.operands
    type_ = cast(TensorType, operand.type)
    copy: Operator
    if type_.element_type != f32:
        copy = Cast(operand, element_type=f32)
    elif is_shared(operand):
        copy = Copy(operand, memory=Memory("rmem", "linear"))
    else:
        return
    copy.results[0].name_hint = operand.name_hint
    Rewriter.insert_op(copy, InsertPoint.before(op))
    op.operands[0] = copy.results[0]
    if isinstance(copy, Copy):
        operand.replace_uses_with_if(
            copy.results[0], lambda use: _reads_after(use.operation, op)
        )


def _reads_after(reader: Operation, op: Operator) -> bool:
    """Whether threads read, element by element, behind an operator of their block."""
    return (
        isinstance(reader, Operator)
        and reader.ELEMENTWISE
        and not isinstance(reader, Copy)
        and reader.parent_block() is op.parent_block()
        and op.is_before_in_block(reader)
    )


def _bounce_vectors(op: Operator, layouts: Layouts, copies: _Copies) -> None:
    """
    A row vector held in the registers of one layout is read from SMEM by a tile of
    another: no thread holds all that it needs. So is one that was reduced from another
    tile than the one that it meets was reduced from: each reduction decides a layout.
    """
    result = _tile_of(op.results[0], layouts)
    decided = reductions_behind(result)
    for position, operand in enumerate(op.operands):
        type_ = cast(TensorType, operand.type)
        is_tile = type_.dims == op.result_type.dims
        if operand not in layouts or is_tile or all(dim == 1 for dim in type_.dims):
            continue
        if layouts[operand] != layouts.get(result) or (
            decided and _is_reduced_from_other(operand, decided)
        ):
            op.operands[position] = copies.of(operand, SHARED)


def _bounce_rescales(op: NextOp, layouts: Layouts, copies: _Copies) -> None:
    """The same for a vector by which a loop rescales what a matmul adds to."""
    rescaled = [given for given in op.contributions if given.rescale is not None]
    for position, given in enumerate(rescaled, len(op.values)):
        vector = op.operands[position]
        is_single = all(dim == 1 for dim in _dims(vector))
        if layouts.get(given.value) != "fragment" or is_single:
            continue
        if layouts.get(vector) == "linear":
            op.operands[position] = copies.of(vector, SHARED)


def _tile_of(value: SSAValue, layouts: Layouts) -> SSAValue:
    """
    A value, or the first fragment that elementwise operators make of it alone: where a
    thread computes an element of that, it computes those behind it.
    """
    tile = value
    while layouts.get(tile) == "linear":
        user = tile.get_user_of_unique_use()
        if not isinstance(user, Operator) or isinstance(user, Copy):
            return value
        if not user.ELEMENTWISE or user.result_type.dims != _dims(value):
            return value
        tile = user.results[0]
    return tile


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return cast(TensorType, value.type).dims


def _is_reduced_from_other(vector: SSAValue, decided: set[Operator]) -> bool:
    reductions = reductions_behind(vector)
    return bool(reductions) and not any(
        reductions_behind(reduction.operands[0]) & decided for reduction in reductions
    )


def _stage_stores(op: YieldOp, layouts: Layouts, copies: _Copies) -> None:
    """Fragments leave through SMEM, so that the store is coalesced."""
    for position, value in enumerate(op.values):
        type_ = cast(TensorType, value.type)
        is_matrix = sum(dim != 1 for dim in type_.dims) >= 2
        if layouts.get(value) == "fragment" and is_matrix and _is_narrow(type_):
            op.operands[position] = copies.of(value, SWIZZLED)


def _is_narrow(type_: TensorType) -> bool:
    element: Attribute = type_.element_type
    return element_bytes(element) <= 2
