"""
The rule by which results are right (DESIGN section 7).

An element may be off by twice the largest error of eager low precision, plus 2 units in
the last place of its type, and has to be finite where the reference is. It has to be
infinite where the reference is and eager agrees; where the reference is no number,
anything goes: NaNs and infinities of inputs spread as they do in eager mode. Nothing is
asked where a type is too small for what has to be rounded to it, an operand of a matmul
beyond the largest float16.

The functions take NumPy or PyTorch as `np`, and arrays of float64 of its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from xdsl.ir import Attribute

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.operator import is_float

NumPy: TypeAlias = Any
Array: TypeAlias = Any

EAGER_ERRORS = 2
"""How many times the largest error of eager mode is allowed."""
LAST_PLACES = 2
"""How many units in the last place are allowed on top of it."""
LOST = 0.1
"""The error, as a part of the largest element, from which a result is lost."""


@dataclass(frozen=True)
class FloatFormat:
    """A float type: bits of the significand, exponent of the least and largest step."""

    significand: int
    least_exponent: int
    """Of the smallest positive number, `2 ** least_exponent`."""
    largest: float


FORMATS = {
    "float16": FloatFormat(11, -24, 65504.0),
    "bfloat16": FloatFormat(8, -133, 2.0**127 * (2 - 2.0**-7)),
    "float32": FloatFormat(24, -149, 2.0**127 * (2 - 2.0**-23)),
    "float64": FloatFormat(53, -1074, 2.0**1023 * (2 - 2.0**-52)),
}


def format_of(element: Attribute) -> FloatFormat:
    """The format of a float element type; KeyError for other types."""
    return FORMATS[dtype_name(element)]


def last_place(np: NumPy, values: Array, format_: FloatFormat) -> Array:
    """The distance from each finite number to the next one of a format."""
    _, exponents = np.frexp(values)
    least = exponents * 0 + format_.least_exponent
    steps = np.maximum(exponents - format_.significand, least)
    return np.ldexp(values * 0.0 + 1.0, np.where(values == 0, least, steps))


@dataclass(frozen=True)
class Judgement:
    """
    One result under the rule.

    `error` and `eager_error` are the largest absolute ones where all are finite;
    `allowed` is the bound of the element that exceeds its own most, or comes closest.
    `exceeding` counts elements beyond their bound, `not_finite` those that are not
    finite though the reference is, or miss an infinity of it, and `checked` all of
    which the rule says something.
    """

    error: float
    eager_error: float
    allowed: float
    exceeding: int
    not_finite: int
    checked: int

    @property
    def is_right(self) -> bool:
        return not self.exceeding and not self.not_finite

    def __str__(self) -> str:
        texts: list[str] = []
        if self.not_finite:
            texts.append(
                f"{self.not_finite} of {self.checked} elements are not finite, or not "
                "infinite, where the reference is"
            )
        if self.exceeding:
            texts.append(
                f"{self.exceeding} of {self.checked} elements are off by up to "
                f"{self.error:.3g}, allowed {self.allowed:.3g} "
                f"(eager is off by {self.eager_error:.3g})"
            )
        return (
            "; ".join(texts) or f"off by {self.error:.3g}, allowed {self.allowed:.3g}"
        )


def judge(
    np: NumPy,
    result: Array,
    reference: Array,
    eager: Array | None,
    element: Attribute,
    limit: Array | None = None,
) -> Judgement:
    """
    Judge a result of an element type against its reference.

    `eager` is None where eager mode overflows and the reference does not: then a result
    only has to be finite. An infinity is right where the bound reaches beyond the
    largest number. `limit` is what no kernel can be better than: nothing is
    asked where it is not finite. Integers and masks have to be equal.
    """
    if not is_float(element):
        different = int((result != reference).sum())
        return Judgement(float(different > 0), 0.0, 0.0, different, 0, _count(result))
    fits = fitting(np, reference, element)
    if limit is not None:
        fits = fits & np.isfinite(limit)
    compared = fits & np.isfinite(result)
    missed = fits & ~np.isfinite(result)
    infinite = np.isinf(reference)
    error = _distances(np, compared, result, reference)
    eager_error = float("inf")
    if eager is not None:
        known = fits & np.isfinite(eager)
        eager_error = _largest(_distances(np, known, eager, reference))
    format_ = format_of(element)
    steps = last_place(np, np.where(fits, reference, 0.0), format_)
    bound = steps * LAST_PLACES + EAGER_ERRORS * eager_error
    if eager is not None:
        # So close to the largest number, an error within the bound overflows.
        past = np.where(reference < 0, -reference, reference) + bound > format_.largest
        is_same_side = (result > 0) == (reference > 0)
        missed = missed & ~(np.isinf(result) & is_same_side & past)
        is_known = infinite & (eager == reference)
        missed = np.logical_or(missed, is_known & (result != reference))
    return Judgement(
        error=_largest(error),
        eager_error=eager_error,
        allowed=_of_worst(bound, error - bound),
        exceeding=int((compared & (error > bound)).sum()),
        not_finite=int(missed.sum()),
        checked=int(np.logical_or(fits, infinite).sum()),
    )


def lost(
    np: NumPy, result: Array, reference: Array, element: Attribute, usual: float
) -> str | None:
    """
    How a result of an element type is lost, whatever eager mode makes of it: it is not
    finite where its reference is, or has no digit of it; None if it is not lost.

    `usual` is the largest element on usual inputs: an error that is small beside it is
    no loss, even where all of the reference cancels.
    """
    if not is_float(element):
        return None
    fits = fitting(np, reference, element)
    missed = int((fits & ~np.isfinite(result)).sum())
    if missed:
        return f"{missed} of {_count(result)} elements are not finite"
    largest = max(usual, largest_fitting(np, reference, element))
    error = _largest(_distances(np, fits, result, reference))
    if error <= LOST * largest:
        return None
    return f"elements are off by up to {error:.3g}, where the largest is {largest:.3g}"


def overflows(np: NumPy, result: Array, reference: Array, element: Attribute) -> bool:
    """Whether some element is not finite though the reference and its type allow it."""
    if not is_float(element):
        return False
    return bool((fitting(np, reference, element) & ~np.isfinite(result)).any())


def fitting(np: NumPy, reference: Array, element: Attribute) -> Array:
    """Where a reference is a number of its type, and not beyond the largest of it."""
    return np.abs(reference) <= format_of(element).largest


def largest_fitting(np: NumPy, reference: Array, element: Attribute) -> float:
    """The largest absolute number of a reference that fits its type."""
    fits = fitting(np, reference, element)
    return _largest(np.abs(np.where(fits, reference, 0.0)))


def _distances(np: NumPy, where: Array, a: Array, b: Array) -> Array:
    return np.abs(np.where(where, a, 0.0) - np.where(where, b, 0.0))


def _count(array: Array) -> int:
    return prod(array.shape)


def _largest(array: Array) -> float:
    return 0.0 if 0 in array.shape else float(array.max())


def _of_worst(bound: Array, excess: Array) -> float:
    if 0 in bound.shape:
        return 0.0
    return float(bound.reshape(-1)[int(excess.reshape(-1).argmax())])
