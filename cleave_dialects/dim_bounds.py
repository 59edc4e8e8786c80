"""Bounds of dims: interval arithmetic, and bounds of names from inequalities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

from cleave.dialects.dims import Atom, Dim, Term, names_of, terms_of

Endpoint: TypeAlias = int | float
"""An integer, or plus or minus infinity."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `low` to `high`, both included."""

    low: Endpoint
    high: Endpoint

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        corners = [
            _product(x, y)
            for x in (self.low, self.high)
            for y in (other.low, other.high)
        ]
        return Interval(min(corners), max(corners))

    def __floordiv__(self, other: Interval) -> Interval:
        if other.high <= -1:
            return -self // -other
        if other.low < 1:
            return EVERYTHING
        return Interval(
            min(_quotient(self.low, y) for y in (other.low, other.high)),
            max(_quotient(self.high, y) for y in (other.low, other.high)),
        )

    def __mod__(self, other: Interval) -> Interval:
        if other.high <= -1:
            return -(-self % -other)
        if other.low < 1:
            return EVERYTHING
        if self.low >= 0 and self.high < other.low:
            return self
        high = min(self.high, other.high - 1) if self.low >= 0 else other.high - 1
        return Interval(0, high)


EVERYTHING: Final = Interval(-inf, inf)
NON_NEGATIVE: Final = Interval(0, inf)


def _product(x: Endpoint, y: Endpoint) -> Endpoint:
    return 0 if x == 0 or y == 0 else x * y


def _quotient(x: Endpoint, y: Endpoint) -> Endpoint:
    """x floordiv y for y >= 1, in the limit where one of them is infinite."""
    if abs(x) == inf:
        return x
    return (-1 if x < 0 else 0) if y == inf else x // y


def interval_of(dim: Dim, names: Mapping[str, Interval]) -> Interval:
    """
    Bounds of the values of a dim, given those of names (otherwise non-negative).

    Every occurrence of a name counts as a name of its own: `L - L floordiv 2` has no
    lower bound here.
    """
    total = Interval(0, 0)
    for term in terms_of(dim):
        product = Interval(term.coefficient, term.coefficient)
        for atom, exponent in term.factors:
            factor = _interval_of_atom(atom, names)
            for _ in range(exponent):
                product = product * factor
        total = total + product
    return total


def _interval_of_atom(atom: Atom, names: Mapping[str, Interval]) -> Interval:
    if isinstance(atom, str):
        return names.get(atom, NON_NEGATIVE)
    first, *others = (interval_of(arg, names) for arg in atom.args)
    return _BY_KIND[atom.kind](first, others)


def _minimum(first: Interval, others: Iterable[Interval]) -> Interval:
    every = (first, *others)
    return Interval(min(i.low for i in every), min(i.high for i in every))


def _maximum(first: Interval, others: Iterable[Interval]) -> Interval:
    every = (first, *others)
    return Interval(max(i.low for i in every), max(i.high for i in every))


_BY_KIND: Final[Mapping[str, Callable[[Interval, list[Interval]], Interval]]] = {
    "floordiv": lambda a, b: a // b[0],
    "ceildiv": lambda a, b: -(-a // b[0]),
    "mod": lambda a, b: a % b[0],
    "min": _minimum,
    "max": _maximum,
}


# Bounds of names


def bounds_of_names(
    non_negatives: Iterable[Dim], known: Mapping[str, Interval]
) -> dict[str, Interval]:
    """
    Bounds of names that make every one of these dims non-negative, from `known` ones.

    A dim bounds a name that it holds to the power 1, outside of calls, by the bounds of
    its other terms. An interval comes out empty where that is impossible.
    """
    bounds = dict(known)
    solvable = [
        (name, *parts)
        for dim in non_negatives
        for name in sorted(names_of(dim))
        if (parts := _linear_parts(dim, name)) is not None
    ]
    # Bounds that chase each other, as in M <= N - 1 and N <= M, need not settle.
    for _ in range(_ROUNDS):
        before = dict(bounds)
        for name, coefficient, rest in solvable:
            found = _solve(interval_of(coefficient, bounds), interval_of(rest, bounds))
            bounds[name] = bounds.get(name, NON_NEGATIVE) & found
        if bounds == before:
            break
    return bounds


_ROUNDS: Final = 8


def _linear_parts(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """The pair (a, b) with dim = a * name + b and `name` in neither, if there are."""
    coefficient: Dim = 0
    rest: Dim = 0
    for term in terms_of(dim):
        if (name, 1) in term.factors:
            factors = tuple(factor for factor in term.factors if factor != (name, 1))
            coefficient = coefficient + Term(term.coefficient, factors).dim
        else:
            rest = rest + term.dim
    used = names_of(coefficient) | names_of(rest)
    return None if name in used else (coefficient, rest)


def _solve(coefficient: Interval, rest: Interval) -> Interval:
    """The values of x for which coefficient * x + rest >= 0 is possible."""
    if coefficient.low >= 1:
        # x >= -rest / coefficient, rounded up.
        divisor = coefficient.low if rest.high >= 0 else coefficient.high
        return Interval(-_quotient(rest.high, divisor), inf)
    if coefficient.high <= -1:
        divisor = -coefficient.high if rest.high >= 0 else -coefficient.low
        return Interval(-inf, _quotient(rest.high, divisor))
    return EVERYTHING
