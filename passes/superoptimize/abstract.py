"""
Abstract classes: what a value is made of, without where in the tensor it is.

The class of a value is the scalar that it is on constant tensors, with every dim that
was reduced as a formal factor. This is what Mirage's axioms amount to (sums commute
with sums and with factors, products and quotients reassociate and distribute), decided
by comparing multisets instead of asking a solver.

A class is a polynomial, a multiset of monomials; a monomial is a multiset of factors
over a multiset of factors, *not* cancelled, because a factor that the target does not
have can never go away again. Classes and factors are interned as small integers.

Classes only prune: they decide what is looked at, never what is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, TypeAlias

from cleave.passes.superoptimize.semantics import Dim, Shape

Factors: TypeAlias = tuple[int, ...]
"""A sorted multiset of factors."""
Monomial: TypeAlias = tuple[Factors, Factors]
"""Numerator and denominator."""
Polynomial: TypeAlias = tuple[Monomial, ...]
"""A sorted multiset of monomials."""
Class: TypeAlias = int

ONE: Monomial = ((), ())

MOST_FACTORS = 10_000
"""Of a class; it doubles where a graph multiplies what it has with itself. Those of the
examples have 400 at most."""


class ClassTooLarge(Exception):
    """A class with more than `MOST_FACTORS`; the message is the limit that it hit."""

    def __init__(self) -> None:
        super().__init__(f"factors={MOST_FACTORS}")


class Abstraction:
    """
    The domain of classes (`semantics.Domain`), which interns them.

    With `distribute`, products of sums are multiplied out; without, a sum is one opaque
    factor. The latter finds less (not `X (W + A B)` for `X W + X A B`) and stays small
    where the former blows up, as for `(x - mean(x)) ** 2`.
    """

    def __init__(
        self, primes: Callable[[Dim], Sequence[Dim]], *, distribute: bool
    ) -> None:
        self.primes = primes
        """The dims that a dim is a product of: a split dim's count and part."""
        self.distribute = distribute
        self.factors: list[tuple[Hashable, ...]] = []
        """The kind of each factor and what it is of."""
        self.polynomials: list[Polynomial] = []
        self._factor_ids: dict[tuple[Hashable, ...], int] = {}
        self._class_ids: dict[Polynomial, Class] = {}
        self._memo: dict[tuple[Any, ...], Class] = {}
        self._dim_bits: dict[Dim, int] = {}
        self.without_shifts = False
        self._maxima: set[int] = set()
        """Factors that are the maximum of something."""

    # Interning

    def factor(self, kind: str, *of: Hashable) -> int:
        key = (kind, *of)
        if (known := self._factor_ids.get(key)) is None:
            known = self._factor_ids[key] = len(self.factors)
            self.factors.append(key)
            if kind == "max":
                self._maxima.add(known)
        return known

    def intern(self, monomials: Sequence[Monomial]) -> Class:
        _require_size(sum(map(_size, monomials)))
        polynomial = tuple(sorted(monomials))
        if (known := self._class_ids.get(polynomial)) is None:
            known = self._class_ids[polynomial] = len(self.polynomials)
            self.polynomials.append(polynomial)
        return known

    def leaf(self, kind: str, *of: Hashable) -> Class:
        return self.intern([((self.factor(kind, *of),), ())])

    def dim_mask(self, dims: Sequence[Dim]) -> int:
        """The prime dims among the given dims as a bit set."""
        mask = 0
        for dim in dims:
            if dim != 1:
                for prime in self.primes(dim):
                    mask |= 1 << self._dim_bits.setdefault(prime, len(self._dim_bits))
        return mask

    def dims_in(self, factors: Factors) -> int:
        """The prime dims among factors as a bit set."""
        reduced = [f for f in factors if self.factors[f][0] in ("dim", "over")]
        return self.dim_mask([self.factors[f][1] for f in reduced])

    @property
    def has_opaque_sums(self) -> bool:
        """Whether some sum became a factor, be it only in a denominator."""
        return not self.distribute and any(kind == "sum" for kind, *_ in self.factors)

    def ignoring_shifts(self) -> Abstraction:
        """
        The same classes, except that a maximum does not count in a sum.

        There it is nearly always a shift of an exponent, which may be or not be there:
        with the class that softmax has without its shift as a second target, the search
        finds both forms. (Fingerprints decide whether they are equal.)
        """
        other = copy(self)
        other.without_shifts = True
        other._memo = {}
        return other

    # Products and quotients

    def mul(self, a: Class, b: Class) -> Class:
        key = ("*", a, b) if a <= b else ("*", b, a)
        if (known := self._memo.get(key)) is None:
            left, right = self.polynomials[a], self.polynomials[b]
            _require_size(
                len(right) * sum(map(_size, left)) + len(left) * sum(map(_size, right))
            )
            known = self._memo[key] = self.intern(
                [(_merged(n, m), _merged(d, e)) for n, d in left for m, e in right]
            )
        return known

    def div(self, a: Class, b: Class) -> Class:
        if (known := self._memo.get(("/", a, b))) is None:
            divisor = self.polynomials[b]
            if len(divisor) == 1:
                ((numerator, denominator),) = divisor
            else:
                numerator, denominator = (self.factor("sum", b),), ()
            dividend = self.polynomials[a]
            added = len(numerator) + len(denominator)
            _require_size(sum(map(_size, dividend)) + len(dividend) * added)
            known = self._memo["/", a, b] = self.intern(
                [(_merged(n, denominator), _merged(d, numerator)) for n, d in dividend]
            )
        return known

    def _times(self, a: Class, kind: str, of: Sequence[Hashable]) -> Class:
        key = (kind, a, *of)
        if (known := self._memo.get(key)) is None:
            factors = tuple(sorted(self.factor(kind, x) for x in of))
            known = self._memo[key] = self.mul(a, self.intern([(factors, ())]))
        return known

    def neg(self, a: Class) -> Class:
        return self._times(a, "number", (-1.0,))

    def square(self, a: Class) -> Class:
        return self.mul(a, a)

    def number(self, value: Any) -> Class:
        exact = isinstance(value, int | float)
        return self.leaf("number", float(value) if exact else value)

    # Sums

    def add(self, a: Class, b: Class) -> Class:
        key = ("+", a, b) if a <= b else ("+", b, a)
        if (known := self._memo.get(key)) is None:
            terms = [*self.terms(a), *self.terms(b)]
            if self.without_shifts:
                others = [t for t in terms if self._maxima.isdisjoint(t[0])]
                terms = others or terms
            if self.distribute or len(terms) == 1:
                known = self.intern(terms)
            else:
                known = self.leaf("sum", self.intern(terms))
            self._memo[key] = known
        return known

    def terms(self, a: Class) -> Polynomial:
        """The terms of a class, also of an opaque sum."""
        polynomial = self.polynomials[a]
        if len(polynomial) == 1:
            ((numerator, denominator),) = polynomial
            if len(numerator) == 1 and not denominator:
                kind, *of = self.factors[numerator[0]]
                if kind == "sum":
                    return self.polynomials[_class(of[0])]
        return polynomial

    def sub(self, a: Class, b: Class) -> Class:
        negated = [self.intern([term]) for term in self.terms(b)]
        for term in negated:
            a = self.add(a, self.neg(term))
        return a

    def select(self, mask: Class, a: Class, b: Class) -> Class:
        """A product with the mask if the other value is zero."""
        if b == self.number(0.0):
            return self.mul(mask, a)
        return self.opaque("select", mask, a, b)

    # Reductions: the reduced dims become factors

    def contract(self, a: Class, b: Class, dim: Dim) -> Class:
        return self._times(self.mul(a, b), "dim", self.primes(dim))

    def sum(self, a: Class, axis: int, dim: Dim) -> Class:
        return self._times(a, "dim", self.primes(dim))

    def max(self, a: Class, axis: int, dim: Dim) -> Class:
        """A factor for what it is taken of, and the dims that it is taken over."""
        polynomial = self.polynomials[a]
        kinds = {self.factors[f][0] for n, d in polynomial for f in n + d}
        if len(polynomial) > 1 or not kinds <= {"max", "over"}:
            a = self.leaf("max", a)
        return self._times(a, "over", self.primes(dim))

    # Functions

    def maximum(self, a: Class, b: Class) -> Class:
        return self.opaque("maximum", *sorted((a, b)))

    def opaque(self, name: str, *args: Class) -> Class:
        return self.leaf("apply", name, *args)

    def exp(self, a: Class) -> Class:
        return self.opaque("exp", a)

    def log(self, a: Class) -> Class:
        return self.opaque("log", a)

    def sqrt(self, a: Class) -> Class:
        return self.opaque("sqrt", a)

    # Views

    def transpose(self, a: Class, permutation: Sequence[int]) -> Class:
        return a

    def reshape(self, a: Class, shape: Shape) -> Class:
        return a

    def arguments(self, factor: int) -> tuple[Class, ...]:
        """The classes inside of a factor."""
        kind, *of = self.factors[factor]
        match kind:
            case "apply":
                return tuple(_class(x) for x in of[1:])
            case "max" | "sum":
                return (_class(of[0]),)
            case _:
                return ()


def _merged(a: Factors, b: Factors) -> Factors:
    return tuple(sorted(a + b)) if a and b else a or b


def _size(monomial: Monomial) -> int:
    numerator, denominator = monomial
    return len(numerator) + len(denominator)


def _require_size(factors: int) -> None:
    if factors > MOST_FACTORS:
        raise ClassTooLarge


def _class(of: Hashable) -> Class:
    assert isinstance(of, int)
    return of
