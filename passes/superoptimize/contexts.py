"""
The pruning test: can a value of this class and shape still become part of the target?

A *context* is something that has to be computed as a whole: the target, the argument of
every function in it, every denominator. A value may be part of a context if some
cofactor times its class is contained in the context's class. Two rules follow (paper
section 4, superoptimizer.md 2.2):

* a class that fits into no context is pruned;
* *live dims*: each dim of the value's shape is either still to be reduced, and then it
  is in the cofactor, or it is a dim of what the context's value is used for. This is
  the paper's pruning by eventually-reduced dims, for every tensor and without
  annotations.
"""

from __future__ import annotations

from collections import Counter

from cleave.passes.superoptimize.abstract import (
    Abstraction,
    Class,
    Factors,
    Polynomial,
)


class Contexts:
    """Which classes are part of any of the targets given so far."""

    def __init__(self, abstraction: Abstraction) -> None:
        self.abstraction = abstraction
        self._contexts: list[tuple[Counter[tuple[Factors, Factors]], int]] = []
        self._seen: set[tuple[Polynomial, int]] = set()
        self._live: dict[Class, tuple[int, ...]] = {}

    def add(self, target: Class, dims: int) -> None:
        """
        Add a target whose value has the given dims (a bit set), and all inside it.
        """
        self._visit(self.abstraction.polynomials[target], dims)
        self._live.clear()

    def _visit(self, polynomial: Polynomial, outer: int) -> None:
        if (polynomial, outer) in self._seen:
            return
        self._seen.add((polynomial, outer))
        self._contexts.append((Counter(polynomial), outer))
        abstraction = self.abstraction
        for numerator, denominator in polynomial:
            inner = outer | abstraction.dims_in(numerator)
            if denominator:
                self._visit(((denominator, ()),), inner)
            for factor in numerator + denominator:
                for argument in abstraction.arguments(factor):
                    self._visit(abstraction.polynomials[argument], inner)

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
                for context, outer in self._contexts
                for cofactor in _cofactors(polynomial, context)
            }
            # A way that allows less than another one adds nothing.
            known = self._live[cls] = tuple(
                way
                for way in ways
                if not any(w != way and w & way == way for w in ways)
            )
        return known

    def admits(self, cls: Class, dims: int) -> bool:
        """Whether a value of this class with these dims may become part of a target."""
        return any(dims & ~way == 0 for way in self.live_dims(cls))


def _cofactors(
    polynomial: Polynomial, context: Counter[tuple[Factors, Factors]]
) -> list[Factors]:
    """
    The numerators of all monomials whose product with the polynomial is in the context.
    """
    numerator, denominator = polynomial[0]
    found: list[Factors] = []
    for n, d in context:
        cofactor_n = _difference(n, numerator)
        if cofactor_n is None:
            continue
        cofactor_d = _difference(d, denominator)
        if cofactor_d is None:
            continue
        if len(polynomial) > 1:
            needed = Counter(
                (tuple(sorted(n + cofactor_n)), tuple(sorted(d + cofactor_d)))
                for n, d in polynomial
            )
            if not needed <= context:
                continue
        found.append(cofactor_n)
    return found


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
