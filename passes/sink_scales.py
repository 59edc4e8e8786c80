"""`sink-scales`: move positive factors behind maxima, masks and differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cleave.dialects.algebra.constants import constant_value
from cleave.dialects.algebra.elementwise import Div, Mul, Select, Sub
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import TensorType

MODEST = 1e-6, 1e6
"""
What a reference may be multiplied by: that of a row without keys, `LOWEST`, then stays
finite and far below `UNSEEN`, the exponent that makes such a row 0.
"""


@dataclass(frozen=True)
class SinkScalesPass(ModulePass):
    """
    A maximum of `s * c` is the maximum of `s`, times c, for a positive number c, and so
    is a mask of it by infinities. Both are exact in floating point, too, since rounding
    is monotonic. A difference of multiples `s * c - m * c` becomes `(s - m) * c`, which
    rounds nothing where s and m are close: the largest score has an exponent of 0, and
    c is folded into the constant of the exponential.

    Before:
        %s = algebra.mul %qk, %c
        %m = algebra.reduce_max %s dim 1
        %d = algebra.sub %s, %m
    After:
        %s = algebra.mul %qk, %c
        %m = algebra.reduce_max %qk dim 1
        %1 = algebra.sub %qk, %m
        %d = algebra.mul %1, %c
    """

    name = "sink-scales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                sink_scales(graph)


@dataclass(frozen=True)
class Multiple:
    """A value that is another one times a known scalar, or divided by it."""

    scaling: Mul | Div
    number: float

    @property
    def source(self) -> SSAValue:
        return self.scaling.lhs

    @property
    def factor(self) -> SSAValue:
        """Not only its number, which may follow from a size."""
        return self.scaling.rhs

    @staticmethod
    def of(value: SSAValue, facts: Facts) -> Multiple | None:
        scaling = value.owner
        if not isinstance(scaling, Mul | Div):
            return None
        number = constant_value(scaling.rhs, facts)
        if number is None or cast(TensorType, scaling.rhs.type).dims:
            return None
        if scaling.lhs.type != scaling.result_type:
            return None
        return Multiple(scaling, number)


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
        elif isinstance(op, Sub):
            _sink_difference(op, facts)


def _sink(op: Operator, position: int, facts: Facts) -> None:
    """Apply `op` to what its operand is a multiple of, and multiply the result."""
    multiple = Multiple.of(op.operands[position], facts)
    if multiple is None or not 0 < multiple.number < float("inf"):
        return
    if op.IS_REFERENCE and not MODEST[0] <= multiple.number <= MODEST[1]:
        return
    operands = [*op.operands]
    operands[position] = multiple.source
    _replace(op, type(op)(*operands, **op.params), multiple)


def _sink_difference(op: Sub, facts: Facts) -> None:
    """Subtract before multiplying, where both terms are multiples by one number."""
    lhs, rhs = Multiple.of(op.lhs, facts), Multiple.of(op.rhs, facts)
    if lhs is None or rhs is None:
        return
    if type(lhs.scaling) is type(rhs.scaling) and lhs.factor is rhs.factor:
        _replace(op, Sub(lhs.source, rhs.source), lhs, rhs)


def _replace(op: Operator, unscaled: Operator, *multiples: Multiple) -> None:
    """Multiply `unscaled` by the factor of the multiples, in place of `op`."""

    def insert(new: Operator, hint: str | None) -> SSAValue:
        Rewriter.insert_op(new, InsertPoint.before(op))
        new.results[0].name_hint = hint
        return new.results[0]

    make: Callable[[SSAValue, SSAValue], Operator] = type(multiples[0].scaling)
    value = insert(unscaled, None)
    product = insert(make(value, multiples[0].factor), op.results[0].name_hint)
    op.results[0].replace_all_uses_with(product)
    Rewriter.erase_op(op)
    for multiple in multiples:
        if not any(multiple.scaling.results[0].uses):
            Rewriter.erase_op(multiple.scaling)
