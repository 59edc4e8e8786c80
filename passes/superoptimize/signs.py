"""
Where a candidate is defined: signs of values that hold for all inputs.

A candidate may divide, take roots and logarithms only where that is certain to be
defined whenever the original graph is. So the original's own divisors are taken to be
non-zero, its radicands non-negative, and everything else has to follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from cleave.passes.superoptimize.semantics import Dim, Shape, Undefined


class Sign(IntFlag):
    """What is known of every element of a value."""

    UNKNOWN = 0
    NON_NEGATIVE = 1
    NON_ZERO = 2
    POSITIVE = 3


@dataclass(frozen=True, slots=True)
class Signed:
    """A sign and, if there is one, the value whose sign it is."""

    sign: Sign
    value: int | None = None


class Signs:
    """
    The domain of signs (`semantics.Domain`).

    An operation whose operands are not known to be in its domain raises `Undefined`,
    or, with `assuming`, adds to `assumed` what has to hold.
    """

    def __init__(self, *, assuming: bool) -> None:
        self.assuming = assuming
        self.assumed: dict[int, Sign] = {}

    def _require(self, a: Signed, sign: Sign) -> None:
        if a.sign & sign == sign:
            return
        if not self.assuming:
            raise Undefined("not known to be defined")
        if a.value is not None:
            known = self.assumed.get(a.value, Sign.UNKNOWN)
            self.assumed[a.value] = known | sign

    def number(self, value: Any) -> Signed:
        if not isinstance(value, int | float):
            return Signed(Sign.POSITIVE)  # the extent of a dim
        if value > 0:
            return Signed(Sign.POSITIVE)
        return Signed(Sign.NON_ZERO if value < 0 else Sign.NON_NEGATIVE)

    def add(self, a: Signed, b: Signed) -> Signed:
        both = a.sign & b.sign & Sign.NON_NEGATIVE
        return Signed(both | ((a.sign | b.sign) & Sign.NON_ZERO if both else both))

    def sub(self, a: Signed, b: Signed) -> Signed:
        return Signed(Sign.UNKNOWN)

    def mul(self, a: Signed, b: Signed) -> Signed:
        return Signed(a.sign & b.sign)

    def div(self, a: Signed, b: Signed) -> Signed:
        self._require(b, Sign.NON_ZERO)
        return Signed(a.sign & (b.sign | Sign.NON_ZERO))

    def neg(self, a: Signed) -> Signed:
        return Signed(a.sign & Sign.NON_ZERO)

    def square(self, a: Signed) -> Signed:
        return Signed(a.sign | Sign.NON_NEGATIVE)

    def exp(self, a: Signed) -> Signed:
        return Signed(Sign.POSITIVE)

    def log(self, a: Signed) -> Signed:
        self._require(a, Sign.POSITIVE)
        return Signed(Sign.UNKNOWN)

    def sqrt(self, a: Signed) -> Signed:
        self._require(a, Sign.NON_NEGATIVE)
        # Zero exactly where its argument is, so what is required of it is of that.
        return Signed(a.sign | Sign.NON_NEGATIVE, a.value)

    def maximum(self, a: Signed, b: Signed) -> Signed:
        either = a.sign & b.sign
        if Sign.POSITIVE in (a.sign, b.sign):
            either = Sign.POSITIVE
        return Signed(either | ((a.sign | b.sign) & Sign.NON_NEGATIVE))

    def opaque(self, name: str, *args: Signed) -> Signed:
        return Signed(Sign.UNKNOWN)

    def select(self, mask: Signed, a: Signed, b: Signed) -> Signed:
        return Signed(a.sign & b.sign)

    def contract(self, a: Signed, b: Signed, dim: Dim) -> Signed:
        return self.sum(self.mul(a, b), -1, dim)

    def sum(self, a: Signed, axis: int, dim: Dim) -> Signed:
        return Signed(a.sign if a.sign & Sign.NON_NEGATIVE else Sign.UNKNOWN)

    def max(self, a: Signed, axis: int, dim: Dim) -> Signed:
        return Signed(a.sign)

    def transpose(self, a: Signed, permutation: Sequence[int]) -> Signed:
        return Signed(a.sign)

    def reshape(self, a: Signed, shape: Shape) -> Signed:
        return Signed(a.sign)
