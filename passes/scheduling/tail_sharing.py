"""
One mask for the tail of a loop, where each reduction came with its own.

What lies beyond the end of a dim means nothing, so whoever reads a value may as well
read it with its tail masked. After an exponential the mask of its exponent, -inf, is
then the 0 that sums want there, and needs no mask of their own.
"""

from __future__ import annotations

from typing import cast

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.operators import Tail
from cleave.passes.scheduling.visibility import (
    BEYOND,
    OTHER,
    Known,
    known_result,
)


def share_tails(block: Block) -> None:
    """Mask each tail of a level once, and drop the masks that change nothing."""
    tails = [op for op in block.ops if isinstance(op, Tail)]
    shared = [op for op in tails if _is_computed(op.source) and _is_alone(op)]
    for op in shared:
        _mask_for_all(op, block)
    for op in list(block.ops):
        if isinstance(op, Tail) and _changes_nothing(op, block):
            op.out.replace_all_uses_with(op.source)
            Rewriter.erase_op(op)


def _mask_for_all(tail: Tail, block: Block) -> None:
    """Mask a value where it is computed, for all that the level computes from it."""
    tail.detach()
    block.insert_op_after(tail, cast(Operation, tail.source.owner))
    for use in list(tail.source.uses):
        user = use.operation
        is_here = isinstance(user, Operator) and user.parent_block() is block
        if is_here and user is not tail:
            user.operands[use.index] = tail.out


def _is_alone(tail: Tail) -> bool:
    """Whether no other mask of the same tail of this value has another fill."""
    users = [use.operation for use in tail.source.uses]
    return all(
        user.params["fill"] == tail.params["fill"]
        for user in users
        if isinstance(user, Tail) and _place(user) == _place(tail)
    )


def _is_computed(value: SSAValue) -> bool:
    """
    Whether a value is more than what was loaded and rounded, whose zeros beyond the end
    others may rely on.
    """
    owner = value.owner
    if not isinstance(owner, Operator):
        return False
    return not owner.ONLY_ROUNDS or _is_computed(owner.operands[0])


def _changes_nothing(tail: Tail, block: Block) -> bool:
    """Whether what is masked has the value that it is masked with."""
    known = _known_beyond(tail, block)
    return known.get(tail.source, OTHER) == BEYOND.number(tail.params["fill"])


def _known_beyond(tail: Tail, block: Block) -> dict[SSAValue, Known]:
    """What is known of the values before a mask, at the positions that it masks."""
    known: dict[SSAValue, Known] = {}
    for op in block.ops:
        if op is tail:
            break
        if not isinstance(op, Operator):
            continue
        if op.operands and op.result_type.dims != tail.result_type.dims:
            continue
        if isinstance(op, Tail):
            if _place(op) == _place(tail):
                known[op.out] = BEYOND.number(op.params["fill"])
        elif op.ELEMENTWISE or not op.operands:
            known[op.results[0]] = known_result(op, BEYOND, known)
    return known


def _place(tail: Tail) -> tuple[int, Dim]:
    return tail.params["dim"], tail.params["limit"]
