"""
The pruning test: can a value of this class and shape still become part of the target?

A *context* is something that has to be computed as a whole: the target, the argument of
every function in it, every denominator. A value may be part of a context if some
cofactor times its class is contained in the context's class. Two rules follow (paper
section 4):

* a class that fits into no context is pruned;
* *live dims*: each dim of the value's shape is either still to be reduced, and then it
  is in the cofactor, or it is a dim of what the context's value is used for. This is
  the paper's pruning by eventually-reduced dims, for every tensor and without
  annotations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cleave.passes.superoptimize.abstract import (
    Abstraction,
    Class,
    Factors,
    Monomial,
    Polynomial,
)


class Contexts:
    """Which classes are part of any of the targets given so far."""

    def __init__(self, abstraction: Abstraction) -> None:
        self.abstraction = abstraction
        self._contexts: list[_Context] = []
        self._seen: set[tuple[Polynomial, int]] = set()
        self._live: dict[Class, tuple[int, ...]] = {}
        self._places: dict[Class, tuple[int, int]] = {}

    def add(self, target: Class, dims: int) -> None:
        """
        Add a target whose value has the given dims (a bit set), and all inside it.
        """
        self._visit(self.abstraction.polynomials[target], dims)
        self._live.clear()
        self._places.clear()

    def _visit(self, polynomial: Polynomial, outer: int) -> None:
        if (polynomial, outer) in self._seen:
            return
        self._seen.add((polynomial, outer))
        self._contexts.append(_Context(polynomial, outer))
        abstraction = self.abstraction
        for numerator, denominator in polynomial:
            inner = outer | abstraction.dims_in(numerator)
            if denominator:
                self._visit(((denominator, ()),), inner)
            for factor in numerator + denominator:
                for argument in abstraction.arguments(factor):
                    self._visit(abstraction.polynomials[argument], inner)

    def places(self, cls: Class) -> tuple[int, int]:
        """
        Where the class may be a factor and where it may be a term, as bit sets: of the
        monomials and of the contexts that have all its kinds of factors. What is a
        product of two classes has a place among the first that they have in common, a
        sum among the second.
        """
        if (known := self._places.get(cls)) is None:
            as_factor = as_term = 0
            factors = _all_kinds(self.abstraction.polynomials[cls][0])
            term = _all_kinds(self.abstraction.terms(cls)[0])
            bit = 1
            for number, context in enumerate(self._contexts):
                for n_kinds, d_kinds, _, _ in context.kinds:
                    if not factors & ~(n_kinds | d_kinds):
                        as_factor |= bit
                    if not term & ~(n_kinds | d_kinds):
                        as_term |= 1 << number
                    bit <<= 1
            known = self._places[cls] = as_factor, as_term
        return known

    def live_dims(self, cls: Class) -> tuple[int, ...]:
        """
        For each way in which the class fits into a context, the dims that a value may
        have there, as a bit set. Empty if it fits nowhere.
        """
        if (known := self._live.get(cls)) is None:
            polynomials = {
                self.abstraction.polynomials[cls],
                self.abstraction.terms(cls),
            }
            ways = {
                outer | self.abstraction.dims_in(cofactor)
                for polynomial in polynomials
                for outer, cofactor in self._fits(polynomial)
            }
            # A way that allows less than another one adds nothing.
            known = self._live[cls] = tuple(
                way
                for way in ways
                if not any(w != way and w & way == way for w in ways)
            )
        return known

    def _fits(self, polynomial: Polynomial) -> Iterator[tuple[int, Factors]]:
        """
        The ways in which a polynomial is part of a context: the context's outer dims,
        and the numerator of what the polynomial has to be multiplied with.
        """
        numerator, denominator = polynomial[0]
        n_kinds, d_kinds = _kinds(numerator), _kinds(denominator)
        for context in self._contexts:
            for whole_n_kinds, whole_d_kinds, whole_n, whole_d in context.kinds:
                # Most are told apart by a factor that the other does not have at all.
                if n_kinds & ~whole_n_kinds or d_kinds & ~whole_d_kinds:
                    continue
                n = _difference(whole_n, numerator)
                d = _difference(whole_d, denominator)
                if n is None or d is None:
                    continue
                if len(polynomial) == 1:
                    yield context.outer, n
                    continue
                needed = Counter(
                    (tuple(sorted(m + n)), tuple(sorted(e + d))) for m, e in polynomial
                )
                if needed <= context.terms:
                    yield context.outer, n

    def admits(self, cls: Class, dims: int) -> bool:
        """Whether a value of this class with these dims may become part of a target."""
        return any(dims & ~way == 0 for way in self.live_dims(cls))


class _Context:
    """A polynomial to be part of, with the dims of its value and those around it."""

    def __init__(self, polynomial: Polynomial, outer: int) -> None:
        self.outer = outer
        self.terms = Counter(polynomial)
        self.kinds = [(_kinds(n), _kinds(d), n, d) for n, d in self.terms]


def _all_kinds(monomial: Monomial) -> int:
    numerator, denominator = monomial
    return _kinds(numerator) | _kinds(denominator)


def _kinds(factors: Factors) -> int:
    """The distinct factors as a bit set."""
    kinds = 0
    for factor in factors:
        kinds |= 1 << factor
    return kinds


def _difference(whole: Factors, part: Factors) -> Factors | None:
    """The multiset difference of sorted tuples, or None if `part` is not in `whole`."""
    if len(part) > len(whole):
        return None
    rest: list[int] = []
    position = 0
    for factor in part:
        while position < len(whole) and whole[position] < factor:
            rest.append(whole[position])
            position += 1
        if position == len(whole) or whole[position] != factor:
            return None
        position += 1
    rest.extend(whole[position:])
    return tuple(rest)
