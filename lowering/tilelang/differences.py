"""
Differences of numbers that may be huge and equal, as exponents are.

A mask or a bias of -1e30 leaves a row with an exponent of `-1e30 - -1e30`, and so does
the reference that a loop begins with. That has to be 0, however it is computed.
"""

from __future__ import annotations

from math import isinf

from xdsl.ir import SSAValue

from cleave.dialects.algebra.constants import constant_value
from cleave.dialects.algebra.elementwise import Div, Mul, Select, Sub, Tanh
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.operators import Copy, Tail


def has_moderate_terms(value: SSAValue, facts: Facts) -> bool:
    """Whether a value is a difference of terms that are infinite or not huge."""
    owner = value.owner
    return isinstance(owner, Sub) and is_moderate(owner.lhs, facts)


def is_moderate(value: SSAValue, facts: Facts) -> bool:
    """
    Whether a value is infinite, or so small that its last place is nothing to an
    exponent: a product of matrices or what a bounded function gives, times a number,
    and under a mask of infinities.
    """
    op = value.owner
    if not isinstance(op, Operator):
        return False
    if op.ON_TENSOR_CORES or isinstance(op, Tanh):
        return True
    if op.IS_VIEW or isinstance(op, Tail | Copy):
        return is_moderate(op.operands[0], facts)
    if isinstance(op, Mul):
        pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        return any(_is_finite(b, facts) and is_moderate(a, facts) for a, b in pairs)
    if isinstance(op, Div):
        return _is_finite(op.rhs, facts) and is_moderate(op.lhs, facts)
    if isinstance(op, Select):
        pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        return any(_is_infinite(b, facts) and is_moderate(a, facts) for a, b in pairs)
    return False


def _is_finite(value: SSAValue, facts: Facts) -> bool:
    number = constant_value(value, facts)
    return number is not None and not isinf(number)


def _is_infinite(value: SSAValue, facts: Facts) -> bool:
    number = constant_value(value, facts)
    return number is not None and isinf(number)
