"""
Exponents, which are differences of numbers that may be huge and equal.

The largest score of a row has an exponent of 0, and so has everything in a row that a
mask or a bias of -1e30 hides, and the reference that a loop begins with. A multiply-add
of `a * c - b` would round only one of the two, and leave the error.
"""

from __future__ import annotations

import ast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.elementwise import Sub

ROUNDED_PRODUCT = "__fmul_rn"
"""CUDA's product of two floats that becomes no part of a multiply-add."""


def exponent(text: str, value: SSAValue) -> str:
    """The text of an exponent such that equal terms of a difference leave 0."""
    if not isinstance(value.owner, Sub):
        return text
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
