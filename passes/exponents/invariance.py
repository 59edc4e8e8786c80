"""
Values that could be anything: graphs whose results do not depend on a shift.

A tensor is put in the place of a value, arbitrary but for its dims, and its degrees are
followed to the results. Where these do not change the value is a *free* shift, and 0
may stand for it: the maximum in a softmax, found without looking for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.degrees import Degree, Degrees, Obstacle
from cleave.passes.exponents.forms import Form
from cleave.passes.exponents.propagation import (
    Propagation,
    dims_of,
    places_of,
    unit_of_exponent,
)
from cleave.passes.exponents.wording import Wording

Use: TypeAlias = tuple[Operator, int]
"""An operand of an operator, by its position."""


@dataclass(frozen=True)
class Verdict:
    """Whether a value is a free shift, and why not."""

    reason: str | None
    reaches_exponent: bool
    """Whether an exponent is shifted by it."""

    @property
    def is_free(self) -> bool:
        return self.reason is None


def verdict_on(
    graph: GraphOp, wording: Wording, value: SSAValue, use: Use | None = None
) -> Verdict:
    """Whether a value, or one use of it, is a free shift of the graph."""
    shift = Form.of(value, places_of(dims_of(value)))
    return _Trial(graph, wording, value, use, shift).run()


class _Trial:
    def __init__(
        self,
        graph: GraphOp,
        wording: Wording,
        value: SSAValue,
        use: Use | None,
        shift: Form,
    ) -> None:
        self.graph = graph
        self.wording = wording
        self.value = value
        self.use = use
        self.shift = shift
        self.reaches_exponent = False
        self.propagation = Propagation(Degrees())
        self.degrees: dict[SSAValue, Degree] = {}

    def run(self) -> Verdict:
        return Verdict(self._reason(), self.reaches_exponent)

    def _reason(self) -> str | None:
        for argument in self.graph.inputs:
            self._set(argument, self.propagation.leaf(argument))
        for op in self.graph.operators:
            operands = [self.degrees[operand] for operand in op.operands]
            if self.use is not None and op is self.use[0]:
                position = self.use[1]
                operands[position] = self._shifted(operands[position])
            if unit_of_exponent(op) is not None and operands[0].offset:
                self.reaches_exponent = True
            try:
                degree = self.propagation.result(op, operands)
            except Obstacle as obstacle:
                return self.wording.rule(op, obstacle)
            except NotImplementedError:
                if any(operand.moves for operand in operands):
                    return f"{self.wording.op(op)}: it has no law for what is shifted"
                degree = Degree(op.result_type.dims)
            self._set(op.results[0], degree)
        for number, value in enumerate(self.graph.return_op.values):
            degree = self.degrees[value]
            if degree.moves:
                verb = "scaled" if degree.scale else "shifted"
                by = self.wording.form(degree.scale or degree.offset)
                return f"'algebra.return' op: result {number} is {verb} by {by}"
        return None

    def _set(self, value: SSAValue, degree: Degree) -> None:
        if value is self.value and self.use is None:
            degree = self._shifted(degree)
        self.degrees[value] = degree

    def _shifted(self, degree: Degree) -> Degree:
        return replace(degree, offset=self.shift, factor=None, number=None)


class _Infinities(Degrees):
    """Degrees of what does not move, in which only -inf itself is -inf."""

    def number(self, value: Any) -> Degree:
        return replace(super().number(value), may_vanish=value == -inf)


def values_that_hide_nothing(graph: GraphOp) -> Sequence[SSAValue]:
    """
    Results of operators that are no mask: not -inf except as the maximum of a masked
    row. Only these may be dropped; another -inf in a sum makes an exponential 0.
    """
    propagation = Propagation(_Infinities())
    degrees: dict[SSAValue, Degree] = {}
    for argument in graph.inputs:
        degrees[argument] = propagation.leaf(argument)
    for op in graph.operators:
        try:
            operands = [degrees[operand] for operand in op.operands]
            degree = propagation.result(op, operands)
        except NotImplementedError:
            degree = Degree(op.result_type.dims)
        if op.REDUCTION == "max":
            degree = replace(degree, may_vanish=False)
        degrees[op.results[0]] = degree
    return [
        op.results[0] for op in graph.operators if not degrees[op.results[0]].may_vanish
    ]
