"""
Multiply-adds in NumPy: `a * b + c` rounded once, which is how kernels compute it.

It matters: with multiply-adds `a * c - b * c` is not 0 where a equals b, but the error
of one product.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

MULTIPLY_ADD = "_multiply_add"
"""What `multiply_add` is called in a tree that uses it."""


def with_multiply_adds(tree: ast.Module) -> ast.Module:
    """The same program, in which products are not rounded before they are added."""
    return ast.fix_missing_locations(_WithMultiplyAdds().visit(tree))


class _WithMultiplyAdds(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        minus = isinstance(node.op, ast.Sub)
        match node:
            # Of two products it is the second that is rounded, as by NVIDIA's compiler.
            case ast.BinOp(ast.BinOp(a, ast.Mult(), b), ast.Add() | ast.Sub(), c):
                return _call(a, b, _negative(c) if minus else c)
            case ast.BinOp(c, ast.Add() | ast.Sub(), ast.BinOp(a, ast.Mult(), b)):
                return _call(_negative(a) if minus else a, b, c)
            case _:
                return node


def _negative(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), node)


def _call(*arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(MULTIPLY_ADD, ast.Load()), [*arguments], [])


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    """
    `a * b + c` of float32, rounded once; of other types, integers among them, as usual.

    A product of two float32 is exact in float64, and the sum is rounded to 53 bits
    before it is to 24: wrong only where that makes it a tie.
    """
    if np.result_type(a, b, c) != np.float32:
        return a * b + c
    x, y, z = (np.asarray(value, np.float32).astype(np.float64) for value in (a, b, c))
    return (x * y + z).astype(np.float32)
