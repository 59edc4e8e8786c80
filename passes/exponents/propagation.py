"""Degrees of the values of a graph, operator by operator."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import cast

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType
from cleave.passes.exponents.degree import Degree, Obstacle
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.factors import (
    Factor,
    Places,
    factor_of_tensor,
    trimmed,
)
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.superoptimize.semantics import Shape

_PROBE = "probe"


def places_of(shape: Shape) -> Places:
    """How a tensor of this shape lies along its own axes."""
    rank = len(shape)
    axes = range(rank - 1, -1, -1)
    return trimmed([None if shape[axis] == 1 else axis for axis in axes])


def dims_of(value: SSAValue) -> Shape:
    return cast(TensorType, value.type).dims


class Propagation:
    """
    Computes the degree of each value from those of its operator's operands.

    Values that do not change are known by how they are computed, so that one that is
    computed twice is one factor.
    """

    def __init__(self, domain: Degrees) -> None:
        self.domain = domain
        self._first: dict[Hashable, SSAValue] = {}
        self._same: dict[SSAValue, SSAValue] = {}

    def leaf(self, value: SSAValue) -> Degree:
        """A value from outside: it is what it is, perhaps a mask of infinities."""
        type_ = cast(TensorType, value.type)
        factor = self._factor(value, ("leaf", value))
        return Degree(
            type_.dims,
            factor=factor,
            may_vanish=is_float(type_.element_type),
            is_mask=type_.element_type == i1,
        )

    def result(self, op: Operator, operands: Sequence[Degree]) -> Degree:
        """
        The degree of an operator's result. Raises what the domain raises.
        """
        shape = op.result_type.dims
        key = (
            type(op),
            tuple(sorted(op.params.items())),
            tuple(self._same.get(operand, operand) for operand in op.operands),
        )
        if not op.operands:
            if (number := op.number(op.params)) is not None:
                return replace(self.domain.number(number), shape=shape)
            is_mask = op.result_type.element_type == i1
            own = self._factor(op.results[0], key)
            return Degree(shape, factor=own, is_mask=is_mask)
        degree = interpret(op, self.domain, operands)
        if degree.moves:
            return degree
        own = self._factor(op.results[0], key)
        return degree if degree.factor else replace(degree, factor=own)

    def _factor(self, value: SSAValue, key: Hashable) -> Factor:
        same = self._same[value] = self._first.setdefault(key, value)
        return factor_of_tensor(same, places_of(dims_of(value)))


def interpret(op: Operator, domain: Degrees, operands: Sequence[Degree]) -> Degree:
    """An operator's meaning in degrees. Raises what the domain raises."""
    named = [
        replace(degree, operand=i, is_unchanged=False)
        for i, degree in enumerate(operands)
    ]
    shapes = [type_.dims for type_ in op.operand_types]
    degree = op.interpret(domain, named, shapes, op.params)
    position = degree.operand if degree.is_unchanged else None
    return replace(degree, shape=op.result_type.dims, operand=position)


def unit_of_exponent(op: Operator) -> Factor | None:
    """
    By what an operator's result is scaled if its operand is shifted by 1: the logarithm
    of the base of an exponential. None for what is no exponential of its operand.
    """
    if len(op.operands) != 1 or not op.ELEMENTWISE:
        return None
    return _unit_of_exponent(type(op), tuple(sorted(op.params.items())))


@cache
def _unit_of_exponent(
    operator: type[Operator], params: tuple[tuple[str, object], ...]
) -> Factor | None:
    probe = Degree((), offset=Form.of(_PROBE))
    try:
        degree = operator.interpret(Degrees(), [probe], [()], dict(params))
    except (Obstacle, NotImplementedError):
        return None
    if degree.offset or not degree.scale:
        return None
    ((term, coefficient),) = degree.scale
    return Factor(coefficient, term.powers)


def response(op: Operator, position: int) -> Factor | None:
    """
    By what the result is shifted if one operand is shifted by 1 and the others stay.
    None if the result is not just shifted.
    """
    operands = [
        Degree(type_.dims, offset=Form.of(_PROBE) if i == position else ZERO)
        for i, type_ in enumerate(op.operand_types)
    ]
    try:
        degree = interpret(op, Degrees(), operands)
    except (Obstacle, NotImplementedError):
        return None
    if degree.scale or len(degree.offset.terms) != 1:
        return None
    ((term, coefficient),) = degree.offset
    return Factor(coefficient, term.powers)
