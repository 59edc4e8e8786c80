"""
Running references: online softmax, derived from degrees (DESIGN section 7).

A reference over the dim of a loop is not known before the loop ends. But any value is
sound as long as all terms agree on it, and a reduction of degree w is multiplied by
`exp(w * (old - new))` when the reference moves from `old` to `new`. So the loop carries
the largest element seen so far, from `LOWEST` on, and rescales what it has summed up.
What is left of a reference is a maximum, of the tile or of all that is reduced.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Operation, SSAValue

from cleave.dialects.algebra.contraction import LOWEST, ReduceMax
from cleave.dialects.algebra.elementwise import Max, Sub
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType
from cleave.passes.exponents.builder import GraphBuilder
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.exponents.references import Inhomogeneous, rescales
from cleave.passes.scheduling.waves import IterableReduction


@dataclass(frozen=True)
class RunningReference:
    """A reference that a loop carries, and by what it rescales the reductions."""

    op: Operator
    rescales: Mapping[Operator, Form]


def running_references(
    block: Block,
    group: Sequence[IterableReduction],
    reductions: Sequence[IterableReduction],
) -> list[RunningReference]:
    """
    The references that the loop of `group` can carry.

    They reduce the loop's dim, the group depends on them, and each reduction of the
    group is homogeneous in them. A reference of which another reduction over the loop's
    dim is made first (a normalization before the sum) has to be complete: it is left to
    a loop of its own in front.
    """
    members = [reduction.op for reduction in group]
    needed = upstream_of(members, block)
    candidates = [
        reduction.op
        for reduction in reductions
        if reduction.op.IS_REFERENCE
        and reduction.op in needed
        and reduction.extent == group[0].extent
    ]
    between = {r.op for r in reductions} & needed - set(candidates)
    carried: list[RunningReference] = []
    for reference in candidates:
        varying = {value.owner for value in depending_on([reference], block)}
        if varying & between:
            continue
        with suppress(Inhomogeneous):
            found = rescales(members, reference.results[0], block.ops)
            carried.append(RunningReference(reference, found))
    return carried


def depending_on(ops: Sequence[Operator], block: Block) -> set[SSAValue]:
    """The results of these operators, and what the block computes from them."""
    found: set[SSAValue] = {result for op in ops for result in op.results}
    for op in block.ops:
        if any(operand in found for operand in op.operands):
            found |= set(op.results)
    return found


def upstream_of(ops: Sequence[Operator], block: Block) -> set[Operation]:
    """The operations of the block that these are computed from, without them."""
    found: set[Operation] = set()
    stack: list[Operation] = [*ops]
    while stack:
        for operand in stack.pop().operands:
            owner = operand.owner
            if not isinstance(owner, Operation) or owner in found:
                continue
            if owner.parent_block() is block:
                found.add(owner)
                stack.append(owner)
    return found


def as_maximum(
    op: Operator, operands: Sequence[SSAValue], type_: TensorType
) -> Operator:
    """The largest element of a tile that a reference is taken of."""
    return ReduceMax(*operands, result_type=type_, **op.params)


def write_out(op: Operator, block: Block) -> None:
    """Replace a reference that no loop carries by what it means."""
    maximum = as_maximum(op, op.operands, op.result_type)
    lowest = Constant(result_type=TensorType([], f32), value=LOWEST)
    clamped = Max(maximum, lowest)
    clamped.out.name_hint = op.results[0].name_hint
    block.insert_ops_before([maximum, lowest, clamped], op)
    op.results[0].replace_all_uses_with(clamped.out)
    block.erase_op(op)


def latest(held: SSAValue, seen: SSAValue, name: str | None, body: Block) -> SSAValue:
    """The reference after an iteration: the largest element so far."""
    op = Max(held, seen)
    body.add_op(op)
    op.out.name_hint = name
    return op.out


def factors(
    body: Block,
    references: Sequence[RunningReference],
    members: Sequence[Operator],
    held: Mapping[Operator, SSAValue],
    given: Mapping[Operator, SSAValue],
) -> dict[Operator, SSAValue]:
    """
    What each reduction of a loop is rescaled by when its references move from the
    values they `held` to those `given`: one factor for all that it is the same for.
    Those of degree 0 have none.
    """
    builder = GraphBuilder(body)
    moves: dict[SSAValue, tuple[SSAValue, SSAValue]] = {
        reference.op.results[0]: (held[reference.op], given[reference.op])
        for reference in references
    }

    def moved(tensor: Hashable) -> SSAValue:
        """How a reference has moved, or a scalar that does not."""
        value = cast(SSAValue, tensor)
        return builder.add(Sub, *moves[value]) if value in moves else value

    found: dict[Operator, SSAValue] = {}
    for op in members:
        form = sum((reference.rescales[op] for reference in references), ZERO)
        if form:
            found[op] = builder.exp(form, moved, name="rescale")
    return found
