"""
The SymPy side of symbolic dims: polynomials with integer coefficients over atoms.

An atom is a symbol or an uncancelled call of `FloorDiv`, `CeilDiv`, `Remainder`,
`Minimum` or `Maximum`. Every expression made here is a sum of monomials, not a product
of sums, so that SymPy's structural equality decides equality of polynomials.

Only `symbolic_dim.py` loads this module, and only when the first symbol appears: SymPy
takes longer to load than xDSL.
"""

# SymPy carries no types that are of use here: nothing below it is known to pyright.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportIncompatibleMethodOverride=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import gcd
from typing import Any, ClassVar, TypeAlias

from sympy import Add, Function, Integer, Mul, Pow, S, Symbol

# SymPy's `Expr`: pyright would see half of its methods, with wrong types.
Expression: TypeAlias = Any

Monomial: TypeAlias = frozenset[tuple[Expression, int]]
"""Atoms with their positive exponents; the empty product is 1."""

Polynomial: TypeAlias = Mapping[Monomial, int]
"""Non-zero coefficients by monomial."""

ONE: Monomial = frozenset()


def _order(expression: Expression) -> Any:
    """SymPy's own total order, which no hash seed changes; integers last."""
    return bool(expression.is_Integer), expression.sort_key()


def symbol(name: str) -> Expression:
    """The one SymPy symbol of this name."""
    return Symbol(name, integer=True, nonnegative=True)


def integer(value: int) -> Expression:
    return Integer(value)


def as_integer(expression: Expression) -> int | None:
    return int(expression) if expression.is_Integer else None


def names(expression: Expression) -> frozenset[str]:
    return frozenset(s.name for s in expression.free_symbols)


def add(a: Expression, b: Expression) -> Expression:
    return Add(a, b)


def multiply(a: Expression, b: Expression) -> Expression:
    """The expanded product of two sums of monomials."""
    return Add(*(Mul(x, y) for x in Add.make_args(a) for y in Add.make_args(b)))


@lru_cache(maxsize=1 << 15)
def polynomial(expression: Expression) -> Polynomial:
    found: dict[Monomial, int] = {}
    for term in Add.make_args(expression):
        coefficient, product = term.as_coeff_Mul()
        factors = (f.as_base_exp() for f in Mul.make_args(product) if f is not S.One)
        monomial = frozenset((base, int(exponent)) for base, exponent in factors)
        if coefficient != 0:
            found[monomial] = int(coefficient)
    return found


def from_polynomial(terms: Polynomial) -> Expression:
    return Add(
        *(
            Mul(coefficient, *(Pow(atom, exponent) for atom, exponent in monomial))
            for monomial, coefficient in terms.items()
        )
    )


# Division


def _monomial_quotient(a: Monomial, b: Monomial) -> Monomial | None:
    exponents = dict(a)
    for atom, exponent in b:
        left = exponents.pop(atom, 0) - exponent
        if left < 0:
            return None
        if left > 0:
            exponents[atom] = left
    return frozenset(exponents.items())


def _monomial_product(a: Monomial, b: Monomial) -> Monomial:
    exponents = dict(a)
    for atom, exponent in b:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return frozenset(exponents.items())


def _exact_quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """The polynomial q with a = b * q, for b a sum; None where there is none."""
    atoms = sorted({atom for m in (*a, *b) for atom, _ in m}, key=_order)

    def exponents(monomial: Monomial) -> tuple[int, ...]:
        present = dict(monomial)
        return tuple(present.get(atom, 0) for atom in atoms)

    # Lexicographic order is kept by multiplication: the leading terms must divide.
    leading = max(b, key=exponents)
    rest = dict(a)
    quotient: dict[Monomial, int] = {}
    while rest:
        top = max(rest, key=exponents)
        monomial = _monomial_quotient(top, leading)
        if monomial is None or rest[top] % b[leading]:
            return None
        scale = quotient[monomial] = rest[top] // b[leading]
        for other, coefficient in b.items():
            product = _monomial_product(other, monomial)
            left = rest.pop(product, 0) - scale * coefficient
            if left:
                rest[product] = left
    return quotient


def _split(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and rest with a = b * quotient + rest, term by term."""
    if len(b) > 1:
        exact = _exact_quotient(a, b)
        return ({}, a) if exact is None else (exact, {})
    ((divisor, scale),) = b.items()
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in a.items():
        left = _monomial_quotient(monomial, divisor)
        if left is not None and coefficient % scale == 0:
            quotient[left] = coefficient // scale
        elif left is not None and not monomial:
            quotient[ONE], rest[ONE] = divmod(coefficient, scale)
        else:
            rest[monomial] = coefficient
    return {m: c for m, c in quotient.items() if c}, rest


def _common_factor(a: Polynomial, b: Polynomial) -> tuple[Monomial, int]:
    """The largest monomial and integer dividing both, with the sign of a one-term b."""
    scale = gcd(*a.values(), *b.values())
    first, *others = (dict(monomial) for monomial in (*b, *a))
    common = {
        atom: least
        for atom, exponent in first.items()
        if (least := min(exponent, *(m.get(atom, 0) for m in others)))
    }
    negative = len(b) == 1 and next(iter(b.values())) < 0
    return frozenset(common.items()), -scale if negative else scale


def _divide_by(a: Polynomial, factor: tuple[Monomial, int]) -> Expression:
    monomial, scale = factor
    quotient, _ = _split(a, {monomial: scale})
    return from_polynomial(quotient)


class _Division(Function):
    """
    An integer division that SymPy must neither turn into `floor` nor touch otherwise.

    Folded: integers, terms that the divisor divides, and common factors (a division has
    a meaning only where its divisor is not 0, and then its factors are not 0 either).
    Callers refuse the divisor 0.
    """

    nargs = 2
    is_integer = True
    word: ClassVar[str]

    @classmethod
    def eval(cls, a: Expression, b: Expression) -> Expression | None:
        dividend, divisor = polynomial(a), polynomial(b)
        quotient, rest = _split(dividend, divisor)
        if not rest:
            return cls.whole(from_polynomial(quotient))
        if set(rest) == set(divisor) == {ONE}:
            return add(
                cls.whole(from_polynomial(quotient)),
                Integer(cls.of_integers(rest[ONE], divisor[ONE])),
            )
        factor = _common_factor(rest, divisor)
        if quotient or factor != (ONE, 1):
            left = cls(_divide_by(rest, factor), _divide_by(divisor, factor))
            scale = from_polynomial({factor[0]: factor[1]})
            return add(cls.whole(from_polynomial(quotient)), cls.unscaled(left, scale))
        return cls.of_remainder(a, b) if isinstance(a, Remainder) else None

    @classmethod
    def whole(cls, quotient: Expression) -> Expression:
        """What the part that divides exactly contributes."""
        return quotient

    @classmethod
    def unscaled(cls, value: Expression, scale: Expression) -> Expression:
        """The value for (scale * a, scale * b), given that for (a, b)."""
        return value

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        raise NotImplementedError

    @classmethod
    def of_remainder(cls, a: Expression, b: Expression) -> Expression | None:
        """The value where a is itself `x mod y`, when known."""
        return None


class FloorDiv(_Division):
    word = "floordiv"

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        return a // b

    @classmethod
    def of_remainder(cls, a: Expression, b: Expression) -> Expression | None:
        return S.Zero if a.args[1] == b else None


class CeilDiv(_Division):
    word = "ceildiv"

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        return -(-a // b)


class Remainder(_Division):
    word = "mod"

    @classmethod
    def whole(cls, quotient: Expression) -> Expression:
        return S.Zero

    @classmethod
    def unscaled(cls, value: Expression, scale: Expression) -> Expression:
        return multiply(scale, value)

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        return a % b

    @classmethod
    def of_remainder(cls, a: Expression, b: Expression) -> Expression | None:
        return a if a.args[1] == b else None


# SymPy's own Min and Max consult assumptions: slow, and they fold what only facts may.


class _Extremum(Function):
    is_integer = True
    word: ClassVar[str]

    @classmethod
    def eval(cls, *args: Expression) -> Expression | None:
        flat: list[Expression] = [
            b for a in args for b in (a.args if isinstance(a, cls) else (a,))
        ]
        # Of arguments that differ by a constant one decides.
        constants: dict[Expression, int] = {}
        for a in flat:
            constant, rest = a.as_coeff_Add()
            known = constants.get(rest)
            value = int(constant)
            constants[rest] = value if known is None else cls.of_integers(known, value)
        kept = sorted((add(r, Integer(c)) for r, c in constants.items()), key=_order)
        if len(kept) == 1:
            return kept[0]
        return None if tuple(kept) == args else cls(*kept)

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        raise NotImplementedError


class Minimum(_Extremum):
    word = "min"

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        return min(a, b)


class Maximum(_Extremum):
    word = "max"

    @classmethod
    def of_integers(cls, a: int, b: int) -> int:
        return max(a, b)


_CALLS = (FloorDiv, CeilDiv, Remainder, Minimum, Maximum)
_BY_WORD: dict[str, Callable[..., Expression]] = {c.word: c for c in _CALLS}


def call(word: str, args: Sequence[Expression]) -> Expression:
    return _BY_WORD[word](*args)


def atom_parts(atom: Expression) -> str | tuple[str, tuple[Expression, ...]]:
    """The name of a symbol, or word and arguments of a call."""
    return atom.name if isinstance(atom, Symbol) else (atom.word, atom.args)
