"""
Rebuilding a graph with shifted exponents.

Every value v of the graph is held as another one, v', from which it differs by a known
degree: `v = v' * exp(w)` or `v = v' + a`, where w and a are forms in the references by
which exponents were shifted. An exponential `exp(s)` becomes `exp(s - r)` with w = r;
what follows is computed on v' alone for as long as the rules of degrees allow it:

* values of different w are added: each is multiplied by `exp(w - R)`, where R is the
  larger one (an attention sink);
* a reduction runs over a dim along which w varies: the same, with the reference of w
  over that dim as R (the parts of a split: FlashDecoding's combine);
* what is added to a value matters, or the value is a result: it is added again;
* a value that was scaled matters: w is a difference of references, `exp(w)` is at most
  about 1, and the value is multiplied by it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import cast

import numpy as np
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.contraction import LOWEST, Reference
from cleave.dialects.algebra.elementwise import Add, Max, Mul, Select, Sub
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import ReturnOp
from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.analysis import Exponential, Exponents, without_places
from cleave.passes.exponents.builder import GraphBuilder, unit_of
from cleave.passes.exponents.degree import Degree, Moves, Obstacle, Sort, Unlike, Varies
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.factors import ONE, Factor, Placed
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.exponents.propagation import (
    Propagation,
    dims_of,
    places_of,
    response,
)

UNSEEN = LOWEST * 1e-10
"""
The exponent of a key that nobody sees: above `LOWEST`, and so above a multiple of it,
which the reference of a masked row becomes where a factor was moved out of it.
"""
_ATTEMPTS = 16
"""More obstacles than an operator can meet: each removes a degree of an operand."""


@dataclass(frozen=True)
class Held:
    """What stands for a value of the graph, and the degree by which they differ."""

    value: SSAValue
    degree: Degree


class _Divisions(Degrees):
    """Degrees, with the operands that were divided by and may be 0."""

    def __init__(self) -> None:
        self.divisors: set[int] = set()

    def divides(self, divisor: Degree) -> None:
        if divisor.scale and divisor.may_vanish and divisor.operand is not None:
            self.divisors.add(divisor.operand)


class ShiftedGraph:
    """The body of a graph with its exponents shifted as an analysis says."""

    def __init__(self, exponents: Exponents) -> None:
        self.exponents = exponents
        graph = exponents.graph
        self.block = Block(arg_types=graph.input_types)
        self.builder = GraphBuilder(self.block)
        self.domain = _Divisions()
        self.propagation = Propagation(self.domain)
        self.held: dict[SSAValue, Held] = {}
        self.families: dict[SSAValue, Form] = {}
        """What each reference is shifted by where its family is."""
        self.finite: set[SSAValue] = set()
        """References that are at least `LOWEST`."""
        self.ones: set[SSAValue] = set()
        """Values that are 1 everywhere."""
        for old, new in zip(graph.inputs, self.block.args, strict=True):
            new.name_hint = old.name_hint
            self.held[old] = Held(new, self.propagation.leaf(old))
        for op in graph.operators:
            self._hold(op.results[0])
        returned = [self._plain(self.held[v]) for v in graph.return_op.values]
        self.block.add_op(ReturnOp(returned))
        _erase_unused(self.block)

    # Operators

    def _hold(self, value: SSAValue) -> Held:
        if value not in self.held:
            # A mask may be computed behind the exponential that it hides.
            op = cast(Operator, value.owner)
            for operand in op.operands:
                self._hold(operand)
            self.held[value] = self._rebuilt(op)
        return self.held[value]

    def _rebuilt(self, op: Operator) -> Held:
        operands = [self.held[operand] for operand in op.operands]
        exponential = self.exponents.exponentials.get(op.results[0])
        if exponential is not None and exponential.reason is None:
            return self._shifted(exponential, operands[0])
        operands, degree = self._without_obstacles(op, operands)
        if degree.scale and not self._family(degree.scale):
            operands, degree = self._without_obstacles(op, self._aligned(operands))
        if degree.is_unchanged and degree.operand is not None:
            return operands[degree.operand]
        if degree.offset and not degree.scale:
            operands, degree = self._with_offset_inside(op, operands, degree)
        if self._is_one(op, operands):
            return Held(self._one(op), degree)
        for position in self.domain.divisors:
            operands[position] = self._kept_from_zero(operands[position])
        value = self.builder.add(
            type(op),
            *(operand.value for operand in operands),
            name=op.results[0].name_hint,
            attributes={} if degree.moves else op.attributes,
            result_type=op.result_type,
            **op.params,
        )
        return Held(value, degree)

    def _is_one(self, op: Operator, operands: Sequence[Held]) -> bool:
        if not op.ELEMENTWISE or not op.operands:
            return False
        if any(operand.value not in self.ones for operand in operands):
            return False
        ones = [np.ones(()) for _ in operands]
        return float(op.numpy(np, ones, op.params, ())) == 1

    def _one(self, op: Operator) -> SSAValue:
        """1 in the place of a result, of which nothing is left but the scale."""
        value = self.builder.add(Constant, value=1.0, result_type=op.result_type)
        self.ones.add(value)
        return value

    def _aligned(self, operands: list[Held]) -> list[Held]:
        """
        For a result that is not scaled: operands that are nothing but a scale get the
        one of another operand. `exp(a)` becomes `exp(a - r)` over a sum scaled by r.
        """
        aligned = list(operands)
        for position, operand in enumerate(operands):
            family = self._family(operand.degree.scale)
            if operand.value not in self.ones or not family:
                continue
            for other in operands:
                scale = other.degree.scale
                if other.value not in self.ones and self._family(scale) == family:
                    aligned[position] = self._rescaled(operand, scale)
        return aligned

    def _without_obstacles(
        self, op: Operator, operands: list[Held]
    ) -> tuple[list[Held], Degree]:
        """The operands brought to degrees with which the operator has a law."""
        for _ in range(_ATTEMPTS):
            self.domain.divisors.clear()
            try:
                degrees = [operand.degree for operand in operands]
                return operands, self.propagation.result(op, degrees)
            except NotImplementedError:
                plain = [self._with_plain_value(operand) for operand in operands]
                return plain, Degree(op.result_type.dims)
            except Obstacle as obstacle:
                operands = self._overcome(op, operands, obstacle)
        raise AssertionError(f"'{op.name}' op: obstacles do not end")

    def _shifted(self, exponential: Exponential, operand: Held) -> Held:
        """`exp(s - r)`, or 1 where r is s itself because nothing is summed up."""
        op, unit = exponential.op, exponential.unit
        exponent = self._plain(operand)
        result = exponential.result
        vanishes = operand.degree.may_vanish or bool(exponential.masks)
        for mask in exponential.masks:
            holds, hidden = self._hold(mask).value, self.builder.number(-inf)
            exponent = self.builder.add(Select, holds, exponent, hidden, name="seen")
        shape = dims_of(exponent)
        shift = exponent
        for axis in sorted(exponential.reduced, reverse=True):
            shift = self.builder.add(Reference, shift, name="r", dim=axis)
            self.finite.add(shift)
        if exponential.reduced:
            moved = self.builder.add(Sub, exponent, shift, name="shifted")
            value = self.builder.add(type(op), moved, name=result.name_hint)
        else:
            value = self._one(op)
        family = self.exponents.scale(result)
        self.families[shift] = family.times(unit.inverse())
        scale = Form.of(shift, places_of(dims_of(shift))).times(unit)
        masks = frozenset(
            Placed(mask, places_of(dims_of(mask))) for mask in exponential.masks
        )
        return Held(value, Degree(shape, scale, may_vanish=vanishes, masks=masks))

    def _with_offset_inside(
        self, op: Operator, operands: list[Held], degree: Degree
    ) -> tuple[list[Held], Degree]:
        """
        Add what the result lacks to an operand that lacks nothing instead.

        That operand has the size of the reference, and the other ones do not: in
        `s - log(l)` it is `s - r` that loses no digits, not the difference plus r.
        """
        for position, operand in enumerate(operands):
            if operand.degree.moves or _is_number(operand.degree):
                continue
            factor = response(op, position)
            if factor is not None and factor.powers == ONE:
                form = degree.offset.times(factor.inverse())
                operands = list(operands)
                operands[position] = self._plus(operand, form)
                return operands, replace(degree, offset=ZERO)
        return operands, degree

    # Obstacles

    def _overcome(
        self, op: Operator, operands: Sequence[Held], obstacle: Obstacle
    ) -> list[Held]:
        changed = list(operands)
        places: list[int] = []
        for value in obstacle.values:
            if value.operand is not None:
                places.append(value.operand)
            elif value.moves:
                rule = self.exponents.wording.rule(op, obstacle)
                raise PassFailedException(f"cannot shift exponents: {rule}")
        match obstacle:
            case Unlike(sort=Sort.SCALE):
                scales = [changed[i].degree.scale for i in places]
                if all(self._family(scale) for scale in scales):
                    self._join(changed, places)
                else:
                    for i in places:
                        changed[i] = self._with_plain_value(changed[i])
            case Varies(sort=Sort.SCALE, reduced=True, position=position) if (
                self._family(changed[places[0]].degree.scale)
            ):
                held = changed[places[0]]
                changed[places[0]] = self._with_reference_over(held, position)
            case Unlike() | Moves() | Varies():
                for i in places:
                    changed[i] = self._with_plain_value(changed[i])
            case _:
                raise obstacle
        return changed

    def _join(self, operands: list[Held], places: Sequence[int]) -> None:
        """Scale operands alike, by the largest of their scales."""
        scales = [operands[i].degree.scale for i in places]
        units = {unit_of(scale) for scale in scales}
        unit = units.pop() if len(units) == 1 else Factor(Fraction(1))
        parts = [scale.times(unit.inverse()) for scale in scales]
        largest = self._value(parts[0])
        for part in parts[1:]:
            largest = self.builder.add(Max, largest, self._value(part), name="r")
        if not any(self._is_finite(part) for part in parts):
            if any(operands[i].degree.may_vanish for i in places):
                lowest = self.builder.number(LOWEST)
                largest = self.builder.add(Max, largest, lowest, name="r")
                self.finite.add(largest)
        else:
            self.finite.add(largest)
        self.families[largest] = self._family(parts[0])
        common = Form.of(largest, places_of(dims_of(largest))).times(unit)
        for i in places:
            operands[i] = self._rescaled(operands[i], common)

    def _with_reference_over(self, held: Held, position: int) -> Held:
        """Scaled alike along a dim, by the reference of its scale over that dim."""
        unit = unit_of(held.degree.scale)
        part = held.degree.scale.times(unit.inverse())
        value = self._value(part)
        axis = len(dims_of(value)) - 1 - position
        reference = self.builder.add(Reference, value, name="r", dim=axis)
        self.finite.add(reference)
        self.families[reference] = self._family(part)
        common = Form.of(reference, places_of(dims_of(reference))).times(unit)
        return self._rescaled(held, common)

    def _rescaled(self, held: Held, scale: Form) -> Held:
        if held.degree.scale == scale:
            return held
        value = self._times_exp(held.value, held.degree.scale - scale)
        return Held(value, replace(held.degree, scale=scale))

    def _kept_from_zero(self, held: Held) -> Held:
        """
        A divisor that is 0 in masked rows, plus a term that is inf there, so that the
        quotient is 0, and 0 elsewhere: a key that nobody sees, with the exponent
        `UNSEEN` and the value 0. (It scales as the divisor does, unlike a maximum.)
        """
        scale = held.degree.scale
        total = sum((c for _, c in scale), Fraction(0))
        unit = unit_of(scale)
        if total <= 0 or not all(
            cast(SSAValue, term.shift.tensor) in self.finite
            and term.powers == unit.powers
            for term in scale.terms
        ):
            return held
        unseen = self.builder.number(float(total) * UNSEEN)
        part = scale.times(unit.inverse())
        lacking = self.builder.add(Sub, unseen, self._value(part))
        term = self.builder.exp_of(lacking, unit, name="unseen")
        term = self.builder.trimmed(term, len(dims_of(held.value)))
        return Held(self.builder.add(Add, held.value, term), held.degree)

    # Values

    def _with_plain_value(self, held: Held) -> Held:
        """The value itself, without a degree."""
        degree = held.degree
        if degree.scale:
            value = self._times_exp(held.value, degree.scale)
            held = Held(value, replace(degree, scale=ZERO))
        if degree.offset:
            name, held.value.name_hint = held.value.name_hint, None
            value = self.builder.plus(held.value, degree.offset, self._tensor, name)
            held = Held(value, replace(held.degree, offset=ZERO))
        return held

    def _times_exp(self, value: SSAValue, form: Form) -> SSAValue:
        factor = self.builder.exp(form, self._tensor, name="rescale")
        factor = self.builder.trimmed(factor, len(dims_of(value)))
        if value in self.ones:
            return factor
        name, value.name_hint = value.name_hint, None
        return self.builder.add(Mul, value, factor, name=name)

    def _plain(self, held: Held) -> SSAValue:
        return self._with_plain_value(held).value

    def _plus(self, held: Held, form: Form) -> Held:
        name = "shifted"
        value = self.builder.plus(held.value, form, self._tensor, name)
        return Held(value, held.degree)

    def _tensor(self, tensor: Hashable) -> SSAValue:
        """A reference, or what stands for an unchanging tensor of the graph."""
        value = cast(SSAValue, tensor)
        return self.held[value].value if value in self.held else value

    def _value(self, form: Form) -> SSAValue:
        return self.builder.form(form, self._tensor)

    def _family(self, form: Form) -> Form:
        """A form in references in terms of the families."""
        total = ZERO
        for term, coefficient in form:
            family = self.families[cast(SSAValue, term.shift.tensor)]
            powers = without_places(term.powers)
            total += family.times(Factor(coefficient, powers))
        return total

    def _is_finite(self, form: Form) -> bool:
        return all(
            c > 0 and cast(SSAValue, term.shift.tensor) in self.finite
            for term, c in form
        )


def _is_number(degree: Degree) -> bool:
    return degree.number is not None


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, Operator) and not any(op.results[0].uses):
            block.erase_op(op)
