"""
Values that could be anything: graphs whose results do not depend on a shift.

A tensor is put in the place of a value, arbitrary but for its dims, and its degrees are
followed to the results. Where these do not change the value is a *free* shift, and 0
may stand for it: the maximum in a softmax, found without looking for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.degree import Degree, Obstacle
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.forms import Form
from cleave.passes.exponents.propagation import (
    Propagation,
    dims_of,
    places_of,
    response,
    unit_of_exponent,
)
from cleave.passes.exponents.wording import Wording

Use: TypeAlias = tuple[Operator, int]
"""An operand of an operator, by its position."""


def why_not_free(
    graph: GraphOp, wording: Wording, value: SSAValue, use: Use | None = None
) -> str | None:
    """
    The rule that makes results depend on a value, or on one use of it; None if it is a
    free shift.
    """
    shift = Form.of(value, places_of(dims_of(value)))
    return _Trial(graph, wording, value, use, shift).run()


def reaches_exponent(value: SSAValue) -> bool:
    """Whether an exponent is computed from a value, not through another exponential."""
    waiting = [value]
    seen = {value}
    while waiting:
        for use in waiting.pop().uses:
            user = use.operation
            if not isinstance(user, Operator):
                continue
            if unit_of_exponent(user) is not None:
                return True
            if (result := user.results[0]) not in seen:
                seen.add(result)
                waiting.append(result)
    return False


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
        self.propagation = Propagation(Degrees())
        self.degrees: dict[SSAValue, Degree] = {}

    def run(self) -> str | None:
        for argument in self.graph.inputs:
            self._set(argument, self.propagation.leaf(argument))
        for op in self.graph.operators:
            operands = [self.degrees[operand] for operand in op.operands]
            if self.use is not None and op is self.use[0]:
                position = self.use[1]
                operands[position] = self._shifted(operands[position])
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


def candidates(graph: GraphOp) -> Sequence[SSAValue]:
    """
    The results of operators that may be shifts: they are added to something, and are no
    masks. These are -inf, except as the maximum of a masked row, and a -inf in a sum
    makes an exponential 0. (So does one in a product with what is added; only a maximum
    may be multiplied on its way.)
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
        op.results[0]
        for op in graph.operators
        if not degrees[op.results[0]].may_vanish and _is_added(op)
    ]


def _is_added(op: Operator) -> bool:
    if "max" in (op.REDUCTION, op.COMBINES):
        return True
    return all(
        isinstance(use.operation, Operator)
        and response(use.operation, use.index) is not None
        for use in op.results[0].uses
    )
