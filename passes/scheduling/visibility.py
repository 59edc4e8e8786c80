"""What a mask leaves of a loop: the iterations in which it is true anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, SymbolicDim, ceildiv, floordiv, substitute
from cleave.dialects.itgraph.loop import LoopOp
from cleave.passes.superoptimize.semantics import Dim as SearchDim
from cleave.passes.superoptimize.semantics import Shape, Undefined

################################################################################
# Inequalities                                                                 #
################################################################################


def positive_range(dim: Dim, iterator: str) -> tuple[Dim | None, Dim | None]:
    """
    The iterations from `lo` up to and without `hi` in which a dim is positive.

    None stands for no bound on that side, also where the dim is not linear in the
    iterator.
    """
    offset = substitute(dim, {iterator: 0})
    slope = substitute(dim, {iterator: 1}) - offset
    if substitute(dim, {iterator: 2}) != offset + slope + slope:
        return None, None
    if _is_negative(slope):
        return None, ceildiv(offset, -slope)
    if _is_negative(-slope):
        return floordiv(-offset, slope) + 1, None
    return None, None


def _is_negative(dim: Dim) -> bool:
    """Whether every term has a negative coefficient; sizes are positive."""
    if isinstance(dim, SymbolicDim):
        return all(term.coefficient < 0 for term in dim.terms)
    return dim < 0


################################################################################
# Iterations that give nothing                                                 #
################################################################################


class Kind(Enum):
    """What is known of a value in an iteration in which the mask is false."""

    ZERO = auto()
    LEAST = auto()
    """-inf, the identity of a maximum."""
    POSITIVE = auto()
    FALSE = auto()
    HELD = auto()
    """What a carried state was before."""
    OTHER = auto()


@dataclass(frozen=True)
class Known:
    """A kind, and the state whose value it is if it is `HELD`."""

    kind: Kind
    state: SSAValue | None = None


ZERO, LEAST, FALSE = Known(Kind.ZERO), Known(Kind.LEAST), Known(Kind.FALSE)
POSITIVE, OTHER = Known(Kind.POSITIVE), Known(Kind.OTHER)


def gives_nothing_without(loop: LoopOp, absent: Mapping[SSAValue, Known]) -> bool:
    """Whether an iteration in which values are as in `absent` changes no state."""
    known: dict[SSAValue, Known] = dict(absent)
    for argument, state in zip(loop.state_arguments, loop.states, strict=True):
        if state.kind == "carry":
            known[argument] = Known(Kind.HELD, argument)
    for op in loop.body.block.ops:
        if isinstance(op, Operator) and op.results[0] not in absent:
            known[op.results[0]] = known_result(op, Vanishing(), known)
    for argument, state, given in zip(
        loop.state_arguments, loop.states, loop.contributions, strict=True
    ):
        value = known.get(given.value, OTHER)
        nothing = {
            "carry": Known(Kind.HELD, argument),
            "sum": ZERO,
            "max": LEAST,
        }
        if value != nothing.get(state.kind):
            return False
    return True


def known_result(
    op: Operator, domain: Vanishing, known: Mapping[SSAValue, Known]
) -> Known:
    """What is known of a result, from what is known of the operands."""
    if not op.operands:
        return _generated(op, domain)
    operands = [_of(operand, domain, known) for operand in op.operands]
    shapes = [type_.dims for type_ in op.operand_types]
    try:
        return op.interpret(domain, operands, shapes, op.params)
    except (Undefined, NotImplementedError):
        return OTHER


def _of(value: SSAValue, domain: Vanishing, known: Mapping[SSAValue, Known]) -> Known:
    owner = value.owner
    if value in known or not isinstance(owner, Operator):
        return known.get(value, OTHER)
    # From an outer level, constants and numbers computed from sizes are known.
    is_array = owner.operands and owner.result_type.dims
    return OTHER if is_array else known_result(owner, domain, known)


def _generated(op: Operator, domain: Vanishing) -> Known:
    return domain.number(op.params.get("value"))


class Vanishing:
    """The domain of what is known where a mask is false (`semantics.Domain`)."""

    def number(self, value: Any) -> Known:
        if isinstance(value, SymbolicDim):
            return POSITIVE  # a size
        if not isinstance(value, int | float):
            return OTHER
        if 0 < value < float("inf"):
            return POSITIVE
        return {0.0: ZERO, -float("inf"): LEAST}.get(value, OTHER)

    def add(self, a: Known, b: Known) -> Known:
        if LEAST in (a, b):
            return LEAST
        return b if a == ZERO else a if b == ZERO else OTHER

    def sub(self, a: Known, b: Known) -> Known:
        return a if b == ZERO or (a == LEAST and b != LEAST) else OTHER

    def mul(self, a: Known, b: Known) -> Known:
        if ZERO in (a, b):
            return OTHER if LEAST in (a, b) else ZERO
        return LEAST if {a, b} == {LEAST, POSITIVE} else OTHER

    def div(self, a: Known, b: Known) -> Known:
        if a == ZERO:
            return OTHER if b == ZERO else ZERO
        return LEAST if a == LEAST and b == POSITIVE else OTHER

    def square(self, a: Known) -> Known:
        return ZERO if a == ZERO else OTHER

    def neg(self, a: Known) -> Known:
        return ZERO if a == ZERO else OTHER

    def exp(self, a: Known) -> Known:
        return ZERO if a == LEAST else OTHER

    def log(self, a: Known) -> Known:
        return LEAST if a == ZERO else OTHER

    def sqrt(self, a: Known) -> Known:
        return a if a in (ZERO, POSITIVE) else OTHER

    def maximum(self, a: Known, b: Known) -> Known:
        return b if a == LEAST else a if b in (LEAST, a) else OTHER

    def opaque(self, name: str, *args: Known) -> Known:
        return OTHER

    def select(self, mask: Known, a: Known, b: Known) -> Known:
        return b if mask == FALSE or a == b else OTHER

    def contract(self, a: Known, b: Known, dim: SearchDim) -> Known:
        return self.mul(a, b)

    def sum(self, a: Known, axis: int, dim: SearchDim) -> Known:
        return a if a == ZERO else OTHER

    def max(self, a: Known, axis: int, dim: SearchDim) -> Known:
        return a if a in (ZERO, LEAST) else OTHER

    def transpose(self, a: Known, permutation: Sequence[int]) -> Known:
        return a

    def reshape(self, a: Known, shape: Shape) -> Known:
        return a


class Beyond(Vanishing):
    """
    The domain of what is known beyond the end of a dim, where the other factor of a
    product may be infinite.
    """

    def mul(self, a: Known, b: Known) -> Known:
        return OTHER if OTHER in (a, b) else super().mul(a, b)

    def div(self, a: Known, b: Known) -> Known:
        return OTHER if OTHER in (a, b) else super().div(a, b)


BEYOND = Beyond()
