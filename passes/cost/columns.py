"""
Sums of rows whose columns the warpgroups divide.

To add up a row of a tile, warpgroups meet in SMEM. In a loop each thread rather keeps
the sum of what it has of the rows of all tiles, and they meet once, behind the loop: in
MLA decode with 64 rows that is a tenth of the time. It takes a tile in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects.builtin import StringAttr, f32
from xdsl.ir import Operation, SSAValue

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.tensor import TensorType

Dims = Callable[[SSAValue], tuple[Dim, ...]]
"""The dims of a value's type, with bound symbols as numbers."""


def summed_by_columns(loop: LoopOp, index: int, dims: Dims) -> Operator | None:
    """The reduction behind state number `index`, if the loop keeps sums of columns."""
    state, given = loop.states[index], loop.contributions[index].value
    op, initial = given.owner, state.initial.owner
    if state.kind != "sum" or not _divides_columns(loop):
        return None
    if not isinstance(op, Operator) or op.REDUCTION != "sum" or op.ON_TENSOR_CORES:
        return None
    if not isinstance(initial, Constant) or initial.params["value"] != 0:
        return None
    (operand,) = op.operands
    is_computed = isinstance(operand.owner, Operator)
    is_single = cast(TensorType, operand.type).element_type == f32
    axes = [axis for axis, dim in enumerate(dims(operand)) if dim != 1]
    is_row = axes[-1:] == [op.params["dim"]]
    if is_computed and is_single and is_row and given.has_one_use():
        return op
    return None


def _divides_columns(loop: LoopOp) -> bool:
    op: Operation | None = loop
    while op is not None and not isinstance(op, KernelOp):
        op = op.parent_op()
    return op is not None and op.attributes.get("warps") == StringAttr("columns")
