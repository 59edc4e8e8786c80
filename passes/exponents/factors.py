"""
Factors: numbers and tensors by which a shift is multiplied, known exactly.

`exp((s - m) / sqrt(D))` shifts its exponent by `m / sqrt(D)`, and `exp2(s - m)` by
`m * ln 2`. What becomes of such a shift in a quotient of sums is decided by comparing
these factors, so they are rationals times powers of what has no simpler name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite, log
from typing import Any, TypeAlias

Places: TypeAlias = tuple[int | None, ...]
"""
How a tensor lies along the axes of a value, from the last axis backwards: which axis of
the tensor runs along each; None where the tensor does not vary.
"""

_SIMPLE = 10**6
"""Denominators up to this are what a programmer may have meant by a float."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor as it is seen from a value. Two are equal where they are aligned."""

    tensor: Hashable
    places: Places = ()

    def at(self, place: Callable[[int], int | None], rank: int) -> Placed:
        """Seen from another value: `place` tells where each position was before."""
        moved = [
            None if (before := place(position)) is None else self.place(before)
            for position in range(rank)
        ]
        return Placed(self.tensor, trimmed(moved))

    def place(self, position: int) -> int | None:
        """Which axis of the tensor runs along a position, counted from the last."""
        return self.places[position] if position < len(self.places) else None

    def varies_at(self, position: int) -> bool:
        return self.place(position) is not None

    def is_aligned(self, rank: int) -> bool:
        """Whether the tensor, of this rank, broadcasts to the value as it is."""
        return all(
            axis is None or axis == rank - 1 - position
            for position, axis in enumerate(self.places)
        )

    @property
    def axes(self) -> set[int]:
        """The axes of the tensor that lie along some axis of the value."""
        return {axis for axis in self.places if axis is not None}


def trimmed(places: list[int | None]) -> Places:
    while places and places[-1] is None:
        places.pop()
    return tuple(places)


@dataclass(frozen=True, slots=True)
class Extent:
    """A symbolic dim as a number."""

    dim: Any

    def __str__(self) -> str:
        return str(self.dim)


LN2 = Placed("ln 2")


@dataclass(frozen=True, slots=True)
class Powers:
    """A product of integer powers of tensors, of which no law is used."""

    items: frozenset[tuple[Placed, int]] = frozenset()

    @classmethod
    def of(cls, exponents: Mapping[Placed, int]) -> Powers:
        return cls(frozenset((base, n) for base, n in exponents.items() if n))

    def __mul__(self, other: Powers) -> Powers:
        if not other.items:
            return self
        exponents = dict(self.items)
        for base, n in other.items:
            exponents[base] = exponents.get(base, 0) + n
        return Powers.of(exponents)

    def inverse(self) -> Powers:
        return Powers(frozenset((base, -n) for base, n in self.items))

    def map(self, change: Callable[[Placed], Placed]) -> Powers:
        if not self.items:
            return self
        product = Powers()
        for base, n in self.items:
            product *= Powers.of({change(base): n})
        return product

    def varies_at(self, position: int) -> bool:
        return any(base.varies_at(position) for base, _ in self.items)


ONE = Powers()


def without_places(powers: Powers) -> Powers:
    """The same tensors, wherever their dims are."""
    return powers.map(lambda base: Placed(base.tensor))


@dataclass(frozen=True, slots=True)
class Factor:
    """A rational, not 0, times powers of tensors."""

    rational: Fraction
    powers: Powers = ONE

    def __mul__(self, other: Factor) -> Factor:
        return Factor(self.rational * other.rational, self.powers * other.powers)

    def inverse(self) -> Factor:
        return Factor(1 / self.rational, self.powers.inverse())

    def map(self, change: Callable[[Placed], Placed]) -> Factor:
        return Factor(self.rational, self.powers.map(change))


def factor_of_tensor(tensor: Hashable, places: Places) -> Factor:
    return Factor(Fraction(1), Powers.of({Placed(tensor, places): 1}))


@lru_cache(1024)
def factor_of_number(value: Any) -> Factor | None:
    """
    A number as a factor; None for 0 and infinities. A symbolic dim is a name.

    A float stands for the simplest rational that it is the nearest float of, or for
    such a rational times or over ln 2, so that 1.4426950408889634 undoes ln 2.
    """
    if isinstance(value, int):
        return Factor(Fraction(value)) if value else None
    if not isinstance(value, float):
        return factor_of_tensor(Extent(value), ())
    if not value or not isfinite(value):
        return None
    for exponent in (0, 1, -1):
        scale = log(2) ** exponent
        simple = Fraction(value / scale).limit_denominator(_SIMPLE)
        if simple and abs(float(simple) * scale - value) <= 2e-16 * abs(value):
            return Factor(simple, Powers.of({LN2: exponent}))
    return Factor(Fraction(value))
