"""
What a schedule has to know of references: how values move when a reference does.

A loop over the dim of a reference does not know the reference before its end. It uses
the maximum so far, and multiplies what it has summed up by a power of `e` or 2 whenever
that moves. This is worked out from the operators alone, of a whole graph or of the body
of a level, with tiles as well as with tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.degree import Degree, Obstacle
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.forms import Form
from cleave.passes.exponents.propagation import Propagation, dims_of, places_of


class Inhomogeneous(Exception):
    """A value that moves with a reference, but not by a power; the message says why."""


def rescales(
    ops: Sequence[Operator], reference: SSAValue, block: Iterable[Operation]
) -> dict[Operator, Form]:
    """
    By what the results of some operators are rescaled when a reference moves.

    Args:
        ops: operators among `block`, usually reductions over the dim of the reference.
        reference: the value that moves.
        block: operations in order; values from elsewhere do not move.
    Returns:
        For each operator a form in the reference, times scalars of the block. The
        result is multiplied by the exponential of what the form is for `old - new`.
    Raises:
        Inhomogeneous: a result cannot be brought up to date by a factor.
    """
    moves = degrees_with(reference, block)
    found: dict[Operator, Form] = {}
    for op in ops:
        degree = moves[op.results[0]]
        if isinstance(degree, str):
            raise Inhomogeneous(degree)
        if degree.offset:
            raise Inhomogeneous(f"'{op.name}' op: its result is shifted, not scaled")
        found[op] = _rescale(op, degree.scale, len(dims_of(reference)))
    return found


def degrees_with(
    reference: SSAValue, block: Iterable[Operation]
) -> dict[SSAValue, Degree | str]:
    """
    The degree of every operator's result in one value that moves, which is known by
    itself in the forms (`Form.of(reference, ...)`), or why there is none.
    """
    own = Form.of(reference, places_of(dims_of(reference)))
    propagation = Propagation(Degrees())
    degrees: dict[SSAValue, Degree | str] = {
        reference: Degree(dims_of(reference), offset=own)
    }
    for op in block:
        if not isinstance(op, Operator) or op.results[0] is reference:
            continue
        operands: list[Degree] = []
        reason: str | None = None
        for operand in op.operands:
            degree = (
                degrees[operand] if operand in degrees else propagation.leaf(operand)
            )
            if isinstance(degree, str):
                reason = degree
            else:
                operands.append(degree)
        degrees[op.results[0]] = reason or _result(propagation, op, operands)
    return degrees


def _result(
    propagation: Propagation, op: Operator, operands: Sequence[Degree]
) -> Degree | str:
    try:
        return propagation.result(op, operands)
    except Obstacle as obstacle:
        moves = obstacle.sort.value
        return f"'{op.name}' op: has no law for operands that are {moves} like these"
    except NotImplementedError:
        if any(operand.moves for operand in operands):
            return f"'{op.name}' op: has no law for an operand that moves"
        return Degree(op.result_type.dims)


def _rescale(op: Operator, scale: Form, rank: int) -> Form:
    """The form for a result that is scaled by a multiple of a reference."""
    for term, _ in scale:
        if not term.shift.is_aligned(rank):
            raise Inhomogeneous(
                f"'{op.name}' op: its result has the dims of the reference elsewhere"
            )
        if any(base.places for base, _ in term.powers.items):
            raise Inhomogeneous(
                f"'{op.name}' op: its result is scaled by a multiple of the reference "
                "that is no scalar"
            )
    return -scale
