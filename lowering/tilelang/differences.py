"""
Exponents, which are differences of numbers that may be huge and equal.

A mask or a bias of -1e30 leaves a row with an exponent of `-1e30 - -1e30`, and so does
the reference that a loop begins with. That has to be 0, however it is computed.
"""

from __future__ import annotations

import ast
from math import isinf

from xdsl.ir import SSAValue

from cleave.dialects.algebra.constants import constant_value
from cleave.dialects.algebra.elementwise import Add, Div, Mul, Select, Sub, Tanh
from cleave.dialects.algebra.emission import Terms
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.operators import Copy, Tail

ROUNDED_PRODUCT = "__fmul_rn"
"""CUDA's product of two floats that becomes no part of a multiply-add."""


def exponent(text: str, value: SSAValue, facts: Facts) -> str:
    """The text of an exponent such that equal terms of a difference leave 0."""
    op = value.owner
    if not isinstance(op, Sub):
        return text
    if _is_moderate(op.lhs, facts):
        return Terms(text)
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp):
        node.left, node.right = _rounded(node.left), _rounded(node.right)
    return f"({ast.unparse(node)})".replace("'", '"')


def _rounded(term: ast.expr) -> ast.expr:
    """A term of which a product is rounded, as what it may be equal to has been."""
    match term:
        case ast.BinOp(a, ast.Mult(), b):
            factors = ", ".join(map(ast.unparse, (a, b)))
            text = f'T.call_extern("float32", "{ROUNDED_PRODUCT}", {factors})'
            return ast.parse(text, mode="eval").body
        case _:
            return term


def _is_moderate(value: SSAValue, facts: Facts) -> bool:
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
        return _is_moderate(op.operands[0], facts)
    if isinstance(op, Mul):
        pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        return any(_is_finite(b, facts) and _is_moderate(a, facts) for a, b in pairs)
    if isinstance(op, Div):
        return _is_finite(op.rhs, facts) and _is_moderate(op.lhs, facts)
    if isinstance(op, Add | Sub):
        return _is_moderate(op.lhs, facts) and _is_moderate(op.rhs, facts)
    if isinstance(op, Select):
        pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        return any(_is_infinite(b, facts) and _is_moderate(a, facts) for a, b in pairs)
    return False


def _is_finite(value: SSAValue, facts: Facts) -> bool:
    number = constant_value(value, facts)
    return number is not None and not isinf(number)


def _is_infinite(value: SSAValue, facts: Facts) -> bool:
    number = constant_value(value, facts)
    return number is not None and isinf(number)
