"""Masking of tails: what a reduction sees beyond the end of the dim that it reduces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cleave.dialects.algebra.operator import IDENTITY, Operator, ReductionKind
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.level import Level
from cleave.dialects.itgraph.operators import Tail
from cleave.dialects.itgraph.parts import View
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import TensorType

ReachesEnd = Callable[[BlockArgument, int], bool]
"""Whether the end of a view along a dim is the end of a tensor in GMEM."""


def reduction_of(op: Operator) -> ReductionKind:
    """How an operator reduces; ValueError if it does not."""
    if op.REDUCTION is None:
        raise ValueError(f"'{op.name}' op is no reduction")
    return op.REDUCTION


def masked_operands(
    op: Operator,
    operands: Sequence[SSAValue],
    limit: Dim,
    body: Block,
    reaches_end: ReachesEnd,
) -> list[SSAValue]:
    """
    The operands of a reduction with its identity from `limit` on along the reduced dim.

    Loads give zeros beyond the end of a tensor, which a sum may keep; an exp of them is
    no longer zero, and behind the end of a part of a split the next part begins.
    """
    expression = op.expression
    identity = IDENTITY[reduction_of(op)]
    masked: list[SSAValue] = []
    for operand, indices in zip(operands, expression.operands, strict=True):
        for dim, index in enumerate(indices):
            if not any(term.axis >= expression.rank for term in index):
                continue
            if identity == 0 and is_zero_beyond(operand, dim, reaches_end):
                continue
            tail = Tail(operand, dim=dim, limit=limit, fill=identity)
            body.add_op(tail)
            tail.results[0].name_hint = operand.name_hint
            operand = tail.results[0]
        masked.append(operand)
    return masked


def is_zero_beyond(value: SSAValue, dim: int, reaches_end: ReachesEnd) -> bool:
    """Whether a tile has zeros beyond the end of the tensor that it is loaded from."""
    owner = value.owner
    if isinstance(owner, Operator):
        # Rounding keeps zeros; anything else may turn them into something else.
        return owner.ONLY_ROUNDS and is_zero_beyond(owner.operands[0], dim, reaches_end)
    return isinstance(value, BlockArgument) and reaches_end(value, dim)


def reaches_end(value: BlockArgument, dim: int) -> bool:
    """`ReachesEnd` for a block argument of a plan or a level of it."""
    level = value.block.parent_op()
    if isinstance(level, PlanOp):
        return True
    if not isinstance(level, Level) or value.index >= len(level.sources):
        return False
    return view_reaches_end(level.views[value.index], dim)


def view_reaches_end(view: View, dim: int) -> bool:
    """The same for a view: it has to hold all that there is of its source."""
    dims = cast(TensorType, view.source.type).dims
    if view.tmap.offsets[dim] != 0 or view.tmap.tile[dim] != dims[dim]:
        return False
    return source_reaches_end(view.source, dim)


def source_reaches_end(source: SSAValue, dim: int) -> bool:
    """The same for what a view slices; a tensor of the plan ends where it ends."""
    if isinstance(source, BlockArgument):
        return reaches_end(source, dim)
    owner = source.owner
    return isinstance(owner, Operation) and isinstance(owner.parent_op(), PlanOp)
