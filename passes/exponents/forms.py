"""
Forms: sums of shifts with exact factors, `m - 1/2 * tau * n`.

A shift is a tensor that stands for any tensor of its shape. The terms of a form are
independent: a form that is 0 for every choice of its shifts has no terms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from cleave.passes.exponents.factors import ONE, Factor, Placed, Places, Powers


@dataclass(frozen=True, slots=True)
class Term:
    """A shift, times powers of other tensors."""

    shift: Placed
    powers: Powers = ONE

    def varies_at(self, position: int) -> bool:
        return self.shift.varies_at(position) or self.powers.varies_at(position)

    def map(self, change: Callable[[Placed], Placed]) -> Term:
        return Term(change(self.shift), self.powers.map(change))


@dataclass(frozen=True, slots=True)
class Form:
    """A linear combination of terms; no coefficient is 0."""

    terms: Mapping[Term, Fraction] = field(default_factory=dict[Term, Fraction])

    @classmethod
    def of(cls, shift: Hashable, places: Places = ()) -> Form:
        return cls({Term(Placed(shift, places)): Fraction(1)})

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __iter__(self) -> Iterator[tuple[Term, Fraction]]:
        return iter(self.terms.items())

    def __add__(self, other: Form) -> Form:
        if not other.terms:
            return self
        terms = dict(self.terms)
        for term, coefficient in other:
            terms[term] = terms.get(term, Fraction(0)) + coefficient
        return Form({term: c for term, c in terms.items() if c})

    def __neg__(self) -> Form:
        return self.scaled(Fraction(-1))

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def scaled(self, by: Fraction) -> Form:
        return Form({term: by * c for term, c in self}) if by else ZERO

    def times(self, factor: Factor) -> Form:
        return Form(
            {
                Term(term.shift, term.powers * factor.powers): c * factor.rational
                for term, c in self
            }
        )

    def map(self, change: Callable[[Placed], Placed]) -> Form:
        """The same terms with every tensor placed elsewhere."""
        moved = ZERO
        for term, coefficient in self:
            moved += Form({term.map(change): coefficient})
        return moved

    def varies_at(self, position: int) -> bool:
        """Whether it has different values along the axis at a position."""
        return any(term.varies_at(position) for term in self.terms)

    @property
    def shifts(self) -> set[Hashable]:
        return {term.shift.tensor for term in self.terms}


ZERO = Form()
