"""
Exponents whose maximum was already subtracted: their largest element is 0.

What is added to and subtracted from what is compared term by term: an exponent is safe
if it is a positive multiple of `x - m`, where m is the maximum of x over some dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.degree import Degree, Moves, Obstacle, Sort
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.forms import ZERO, Form, Term
from cleave.passes.exponents.propagation import Propagation, dims_of, places_of


class Sums(Degrees):
    """Degrees in which a value that is no sum, and no multiple of one, is a term."""

    def select(self, mask: Degree, a: Degree, b: Degree) -> Degree:
        # The largest element may be one that the mask hides.
        self.meet(Moves(Sort.OFFSET, a))
        return super().select(mask, a, b)


class Decomposition:
    """Each value of a block as a sum of multiples of values that are no sums."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        self._propagation = Propagation(Sums())
        self._degrees: dict[SSAValue, Degree] = {}
        self._maxima: dict[SSAValue, list[Form]] = {}
        """For a maximum: what it is the maximum of."""
        for op in operators:
            self._degrees[op.results[0]] = self._of(op)

    def sum_of(self, value: SSAValue) -> Form:
        return self._degree(value).offset

    def is_shifted_by_maximum(self, exponent: SSAValue, along: Sequence[int]) -> bool:
        """
        Whether an exponent is a positive multiple of `x - max(x)`, with a maximum for
        every index of the given dims.
        """
        form = self.sum_of(exponent)
        rank = len(dims_of(exponent))
        for term, coefficient in form:
            varies = [axis for axis in range(rank) if term.varies_at(rank - 1 - axis)]
            if varies != list(along):
                continue
            sources = self._sources(cast(SSAValue, term.shift.tensor))
            if coefficient < 0 and any(_is_multiple(form, s, term) for s in sources):
                return True
        return False

    def _degree(self, value: SSAValue) -> Degree:
        if value not in self._degrees:
            self._degrees[value] = self._term(value, self._propagation.leaf(value))
        return self._degrees[value]

    def _of(self, op: Operator) -> Degree:
        operands = [self._degree(operand) for operand in op.operands]
        result = op.results[0]
        if "max" in (op.REDUCTION, op.COMBINES):
            sources = (operand.offset for operand in operands)
            self._maxima[result] = [source for source in sources if source]
            return self._term(result, Degree(dims_of(result)))
        try:
            degree = self._propagation.result(op, operands)
        except (Obstacle, NotImplementedError):
            return self._term(result, Degree(dims_of(result)))
        if degree.scale:
            return self._term(result, Degree(dims_of(result)))
        if degree.offset or _is_number(degree):
            return degree
        return self._term(result, degree)

    def _term(self, value: SSAValue, degree: Degree) -> Degree:
        shape = dims_of(value)
        return replace(degree, offset=Form.of(value, places_of(shape)), scale=ZERO)

    def _sources(self, value: SSAValue) -> Iterator[Form]:
        """What a value is the maximum of, also where maxima are nested."""
        for source in self._maxima.get(value, ()):
            yield source
            if len(source.terms) == 1:
                ((term, coefficient),) = source
                if coefficient == 1 and not term.powers.items:
                    yield from self._sources(cast(SSAValue, term.shift.tensor))


def _is_multiple(form: Form, source: Form, maximum: Term) -> bool:
    """Whether `form` is `b * (source - m)` where its term with m has the factor -b."""
    size = -form.terms[maximum]
    multiple = {
        Term(term.shift, term.powers * maximum.powers): coefficient * size
        for term, coefficient in source
    }
    return form == Form({**multiple, maximum: -size})


def _is_number(degree: Degree) -> bool:
    factor = degree.factor
    return factor is not None and not any(
        base.places for base, _ in factor.powers.items
    )
