"""
Values with a degree, and how they are brought to the same one, or to none.

A value v is held as another one, v', with `v = v' * exp(w)` or `v = v' + a`, where w
and a are forms in references. To add values of different w, each v' is multiplied by
`exp(w - R)`, which is at most 1 if R is the largest of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.contraction import LOWEST, Reference
from cleave.dialects.algebra.elementwise import Add, Max, Mul, Sub
from cleave.passes.exponents.builder import GraphBuilder, unit_of
from cleave.passes.exponents.degree import Degree
from cleave.passes.exponents.factors import Factor, without_places
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.exponents.propagation import dims_of, places_of

UNSEEN = LOWEST * 1e-10
"""
The exponent of a key that nobody sees: above `LOWEST`, and so above a multiple of it,
which the reference of a masked row becomes where a factor was moved out of it.
"""


@dataclass(frozen=True)
class Held:
    """What stands for a value of the graph, and the degree by which they differ."""

    value: SSAValue
    degree: Degree


class HeldValues:
    """The values of a graph, held by others in the one that is built."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.held: dict[SSAValue, Held] = {}
        self.families: dict[SSAValue, Form] = {}
        """What each reference is shifted by where its family is."""
        self.finite: set[SSAValue] = set()
        """References that are at least `LOWEST`."""
        self.ones: set[SSAValue] = set()
        """Values that are 1 everywhere, of which only the scale matters."""

    def joined(self, values: Sequence[Held]) -> list[Held]:
        """Values scaled alike, by the largest of their scales."""
        scales = [held.degree.scale for held in values]
        units = {unit_of(scale) for scale in scales}
        unit = units.pop() if len(units) == 1 else Factor(Fraction(1))
        parts = [scale.times(unit.inverse()) for scale in scales]
        largest = self._value(parts[0])
        for part in parts[1:]:
            largest = self.builder.add(Max, largest, self._value(part), name="r")
        if not any(self._is_finite(part) for part in parts):
            if any(held.degree.may_vanish for held in values):
                lowest = self.builder.number(LOWEST)
                largest = self.builder.add(Max, largest, lowest, name="r")
                self.finite.add(largest)
        else:
            self.finite.add(largest)
        self.families[largest] = self.family(parts[0])
        common = Form.of(largest, places_of(dims_of(largest))).times(unit)
        return [self.rescaled(held, common) for held in values]

    def with_reference_over(self, held: Held, position: int) -> Held:
        """Scaled alike along a dim, by the reference of its scale over that dim."""
        unit = unit_of(held.degree.scale)
        part = held.degree.scale.times(unit.inverse())
        value = self._value(part)
        axis = len(dims_of(value)) - 1 - position
        reference = self.builder.add(Reference, value, name="r", dim=axis)
        self.finite.add(reference)
        self.families[reference] = self.family(part)
        common = Form.of(reference, places_of(dims_of(reference))).times(unit)
        return self.rescaled(held, common)

    def rescaled(self, held: Held, scale: Form) -> Held:
        if held.degree.scale == scale:
            return held
        value = self._times_exp(held.value, held.degree.scale - scale)
        return Held(value, replace(held.degree, scale=scale))

    def kept_from_zero(self, held: Held) -> Held:
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

    def with_plain_value(self, held: Held) -> Held:
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

    def plain(self, held: Held) -> SSAValue:
        return self.with_plain_value(held).value

    def plus(self, held: Held, form: Form) -> Held:
        name = "shifted"
        value = self.builder.plus(held.value, form, self._tensor, name)
        return Held(value, held.degree)

    def _tensor(self, tensor: Hashable) -> SSAValue:
        """A reference, or what stands for an unchanging tensor of the graph."""
        value = cast(SSAValue, tensor)
        return self.held[value].value if value in self.held else value

    def _value(self, form: Form) -> SSAValue:
        return self.builder.form(form, self._tensor)

    def family(self, form: Form) -> Form:
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
