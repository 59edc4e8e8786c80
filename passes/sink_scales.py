"""`sink-scales`: move positive factors behind maxima and masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cleave.dialects.algebra.constants import constant_value
from cleave.dialects.algebra.elementwise import Div, Mul, Select
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import TensorType


@dataclass(frozen=True)
class SinkScalesPass(ModulePass):
    """
    A maximum of `s * c` is the maximum of `s`, times c, for a positive number c, and so
    is a mask of it by infinities. Both are exact in floating point, too, since rounding
    is monotonic. The scores then need no multiplication of their own: their exponential
    takes `s * c - m * c` in one multiply-add.

    Before:
        %s = algebra.mul %qk, %c
        %m = algebra.reduce_max %s dim 1
        %d = algebra.sub %s, %m
    After:
        %s = algebra.mul %qk, %c
        %1 = algebra.reduce_max %qk dim 1
        %m = algebra.mul %1, %c
        %d = algebra.sub %s, %m
    """

    name = "sink-scales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                sink_scales(graph)


def sink_scales(graph: GraphOp) -> None:
    """Do it for one graph, in place; see `SinkScalesPass`."""
    facts = graph.facts
    for op in list(graph.operators):
        if op.REDUCTION == "max":
            _sink(op, 0, facts)
        elif isinstance(op, Select):
            for position, other in ((1, op.rhs), (2, op.lhs)):
                value = constant_value(other, facts)
                scaled = op.operands[position]
                if value is not None and isinf(value) and scaled.has_one_use():
                    _sink(op, position, facts)


def _sink(op: Operator, position: int, facts: Facts) -> None:
    """Apply `op` to what its operand is a multiple of, and multiply the result."""
    scaling = op.operands[position].owner
    if not isinstance(scaling, Mul | Div):
        return
    number = constant_value(scaling.rhs, facts)
    if number is None or not 0 < number < float("inf"):
        return
    source = scaling.lhs
    if cast(TensorType, source.type) != scaling.result_type:
        return
    operands = [*op.operands]
    operands[position] = source

    def insert(new: Operator, hint: str | None) -> SSAValue:
        Rewriter.insert_op(new, InsertPoint.before(op))
        new.results[0].name_hint = hint
        return new.results[0]

    unscaled = insert(type(op)(*operands, **op.params), None)
    factor = insert(Constant(result_type=TensorType([], f32), value=number), "factor")
    make: Callable[[SSAValue, SSAValue], Operator] = type(scaling)
    product = insert(make(unscaled, factor), op.results[0].name_hint)
    op.results[0].replace_all_uses_with(product)
    Rewriter.erase_op(op)
    if not any(scaling.results[0].uses):
        Rewriter.erase_op(scaling)
