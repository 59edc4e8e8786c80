"""Scaling of TileLang expressions, by which constants are multiplied only once."""

from __future__ import annotations

import ast
from collections.abc import Sequence

LOG2_E = 1.4426950408889634


def exp2(argument: str, scale: float = 1.0) -> str:
    """`2 ** (argument * scale)` by the hardware's exponential (within 2 ulp)."""
    return f"exp2({scaled(argument, scale)})"


def scaled(text: str, factor: float) -> str:
    """
    An expression times a number, the number folded into what is there.

    `(s - m) * 0.125` becomes `(s - m) * 0.18`; differences are not multiplied term by
    term, since `a * c - b * c` need not be 0 where a and b are equal: of a multiply-add
    one product is rounded and the other is not.
    """
    if factor == 1.0:
        return text
    node = ast.parse(text, mode="eval").body
    return ast.unparse(_scaled(node, factor)).replace("'", '"')


def _scaled(node: ast.expr, factor: float) -> ast.expr:
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        match node.op:
            case ast.Mult() if (number := _number(right)) is not None:
                return ast.BinOp(left, ast.Mult(), ast.Constant(number * factor))
            case ast.Mult() if (number := _number(left)) is not None:
                return ast.BinOp(right, ast.Mult(), ast.Constant(number * factor))
            case ast.Div() if number := _number(right):
                return ast.BinOp(left, ast.Mult(), ast.Constant(factor / number))
            case _:
                pass
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _scaled(node.operand, -factor)
    if (number := _number(node)) is not None:
        return ast.Constant(number * factor)
    return ast.BinOp(node, ast.Mult(), ast.Constant(factor))


def divided(text: str, divisor: str, positions: Sequence[str]) -> str:
    """
    A quotient. By a number it is a product, and by what does not depend on all of the
    positions a product with the inverse, which is computed once a row: within 1.5 ulp,
    where an exact division takes a dozen instructions an element.
    """
    number = _number(ast.parse(divisor, mode="eval").body)
    if number:
        return scaled(text, 1 / number)
    if (_names(text) - _names(divisor)) & set(positions):
        return f"{text} * (1.0 / {divisor})"
    return f"{text} / {divisor}"


def _names(text: str) -> set[str]:
    tree = ast.parse(text, mode="eval")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _number(node: ast.expr) -> float | None:
    """The value of a literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return None
