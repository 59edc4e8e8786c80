"""
`SymbolicDim`, the symbolic integer behind every dim, and the operations on dims.

Imported through `cleave.dialects.dims`. SymPy is imported when the first symbol appears.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

if TYPE_CHECKING:
    from sympy import Expr

Dim: TypeAlias = "int | SymbolicDim"

CallKind: TypeAlias = Literal["floordiv", "ceildiv", "mod", "min", "max"]

KEYWORDS: Final[tuple[CallKind, ...]] = get_args(CallKind)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# A scheduler asks for the same few sums and products thousands of times, and SymPy takes
# tens of microseconds for each.
_CACHE_SIZE = 1 << 16


class SymbolicDim:
    """
    An integer expression over names: a sum of products of names and of the calls
    `floordiv`, `ceildiv`, `mod`, `min`, `max`. Immutable and hashable.

    Polynomially equal expressions are equal, and a constant is never a `SymbolicDim`:
    every operation returns an `int` where the names cancel. `str` is the text syntax,
    `repr` is the same in quotes. Division is Python's: `K // s` floors.
    """

    __slots__ = ("_expression", "_hash", "_names", "_terms", "_text")

    _expression: Expr
    _hash: int
    _names: frozenset[str] | None
    _terms: tuple[Term, ...] | None
    _text: str | None

    def __init__(self, expression: Expr):
        """Not for callers: `symbol` and arithmetic make dims, in the canonical form."""
        self._expression = expression
        self._hash = hash(expression)
        self._names = self._terms = self._text = None

    @property
    def names(self) -> frozenset[str]:
        if self._names is None:
            from cleave.dialects import dim_algebra

            self._names = dim_algebra.names(self._expression)
        return self._names

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the sum, in the order of the text."""
        if self._terms is None:
            self._terms = _terms(self)
        return self._terms

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SymbolicDim):
            return NotImplemented
        return self._hash == other._hash and self._expression == other._expression

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            from cleave.dialects.dim_text import text_of_terms

            self._text = text_of_terms(self.terms)
        return self._text

    def __repr__(self) -> str:
        return f"'{self}'"

    def __reduce__(self):
        from cleave.dialects.dim_text import parse_dim_text

        return parse_dim_text, (str(self),)

    def __add__(self, other: Dim) -> Dim:
        return _add(self, other) if isinstance(other, _DIM) else NotImplemented

    def __sub__(self, other: Dim) -> Dim:
        return _add(self, -other) if isinstance(other, _DIM) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        return _multiply(self, other) if isinstance(other, _DIM) else NotImplemented

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other) if isinstance(other, _DIM) else NotImplemented

    def __mod__(self, other: Dim) -> Dim:
        return mod(self, other) if isinstance(other, _DIM) else NotImplemented

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: int) -> Dim:
        return _add(-self, other) if isinstance(other, int) else NotImplemented

    def __rfloordiv__(self, other: int) -> Dim:
        return floordiv(other, self) if isinstance(other, int) else NotImplemented

    def __rmod__(self, other: int) -> Dim:
        return mod(other, self) if isinstance(other, int) else NotImplemented

    def __neg__(self) -> SymbolicDim:
        return cast(SymbolicDim, _multiply(self, -1))


_DIM = (int, SymbolicDim)


@dataclass(frozen=True, slots=True)
class Call:
    """A division that does not cancel (two arguments), or a `min` or `max` (two or more)."""

    kind: CallKind
    args: tuple[Dim, ...]


Atom: TypeAlias = str | Call
"""A name or a call: what a polynomial is a polynomial in."""


@dataclass(frozen=True, slots=True)
class Term:
    """An integer times a product of atoms: names first, each with its exponent >= 1."""

    coefficient: int
    factors: tuple[tuple[Atom, int], ...]

    @property
    def degree(self) -> int:
        return sum(exponent for _, exponent in self.factors)


def symbol(name: str) -> SymbolicDim:
    """
    The symbol of this name, a non-negative integer.

    Two symbols of one name are the same symbol. Raises ValueError for a name that does not
    read as a symbol in the text syntax.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' cannot be the name of a symbol")
    if name in KEYWORDS:
        raise ValueError(f"'{name}' is a word of dim expressions, not a symbol")
    return _symbol(name)


def floordiv(a: Dim, b: Dim) -> Dim:
    """The quotient rounded down, like Python's `//`. Raises ZeroDivisionError for b = 0."""
    return _call("floordiv", (a, b))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """The quotient rounded up. Raises ZeroDivisionError for b = 0."""
    return _call("ceildiv", (a, b))


def mod(a: Dim, b: Dim) -> Dim:
    """a - b * (a floordiv b), like Python's `%`. Raises ZeroDivisionError for b = 0."""
    return _call("mod", (a, b))


def minimum(first: Dim, *others: Dim) -> Dim:
    return _call("min", (first, *others))


def maximum(first: Dim, *others: Dim) -> Dim:
    return _call("max", (first, *others))


def call(kind: CallKind, args: tuple[Dim, ...]) -> Dim:
    """The call of this kind: two arguments for a division, one or more for `min` and `max`."""
    return _call(kind, args)


def names_of(dim: Dim) -> frozenset[str]:
    return frozenset() if isinstance(dim, int) else dim.names


def terms_of(dim: Dim) -> tuple[Term, ...]:
    """The terms whose sum the dim is, in the order of the text; none for 0."""
    if isinstance(dim, int):
        return (Term(dim, ()),) if dim else ()
    return dim.terms


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """
    The dim with names replaced, all at once, and folded again.

    Names without a value stay; a value may use names that are replaced elsewhere. Raises
    ZeroDivisionError where a divisor becomes 0.
    """
    if isinstance(dim, int) or dim.names.isdisjoint(values):
        return dim
    used = sorted(dim.names & values.keys())
    return _substitute(dim, tuple((name, values[name]) for name in used))


# Cached


def _expression(dim: Dim) -> Expr:
    from cleave.dialects import dim_algebra

    return dim_algebra.integer(dim) if isinstance(dim, int) else dim._expression  # pyright: ignore[reportPrivateUsage]


def _dim(expression: Expr) -> Dim:
    from cleave.dialects import dim_algebra

    value = dim_algebra.as_integer(expression)
    return _shared(expression) if value is None else value


# One object for one expression, so that its names, terms and text are found once.
_shared = lru_cache(_CACHE_SIZE)(SymbolicDim)


@lru_cache(_CACHE_SIZE)
def _symbol(name: str) -> SymbolicDim:
    from cleave.dialects import dim_algebra

    return _shared(dim_algebra.symbol(name))


@lru_cache(_CACHE_SIZE)
def _add(a: Dim, b: Dim) -> Dim:
    from cleave.dialects import dim_algebra

    return _dim(dim_algebra.add(_expression(a), _expression(b)))


@lru_cache(_CACHE_SIZE)
def _multiply(a: Dim, b: Dim) -> Dim:
    from cleave.dialects import dim_algebra

    return _dim(dim_algebra.multiply(_expression(a), _expression(b)))


@lru_cache(_CACHE_SIZE)
def _call(kind: CallKind, args: tuple[Dim, ...]) -> Dim:
    if all(isinstance(arg, int) for arg in args):
        return _call_of_integers(kind, cast(tuple[int, ...], args))
    from cleave.dialects import dim_algebra

    return _dim(dim_algebra.call(kind, [_expression(arg) for arg in args]))


def _call_of_integers(kind: CallKind, args: tuple[int, ...]) -> int:
    if kind == "min":
        return min(args)
    if kind == "max":
        return max(args)
    a, b = args
    if b == 0:
        raise ZeroDivisionError(f"division by zero: {a} {kind} 0")
    return a // b if kind == "floordiv" else -(-a // b) if kind == "ceildiv" else a % b


@lru_cache(_CACHE_SIZE)
def _substitute(dim: SymbolicDim, values: tuple[tuple[str, Dim], ...]) -> Dim:
    by_name = dict(values)

    def atom(a: Atom) -> Dim:
        if isinstance(a, Call):
            return call(a.kind, tuple(substitute(arg, by_name) for arg in a.args))
        return by_name[a] if a in by_name else symbol(a)

    total: Dim = 0
    for term in dim.terms:
        factors = (atom(a) for a, exponent in term.factors for _ in range(exponent))
        total += reduce(
            lambda product, factor: product * factor, factors, term.coefficient
        )
    return total


def _terms(dim: SymbolicDim) -> tuple[Term, ...]:
    from cleave.dialects import dim_algebra

    def atom(expression: Expr) -> Atom:
        parts = dim_algebra.atom_parts(expression)
        if isinstance(parts, str):
            return parts
        kind, args = parts
        return Call(cast(CallKind, kind), tuple(_dim(arg) for arg in args))

    found: list[Term] = []
    for monomial, coefficient in dim_algebra.polynomial(dim._expression).items():  # pyright: ignore[reportPrivateUsage]
        factors = ((atom(expression), exponent) for expression, exponent in monomial)
        found.append(
            Term(
                coefficient, tuple(sorted(factors, key=lambda f: _reading_order(f[0])))
            )
        )
    found.sort(key=lambda t: (-t.degree, [_reading_order(a) for a, _ in t.factors]))
    # `M - K * s` reads better than `-K * s + M`.
    first = next((t for t in found if t.coefficient > 0), found[0])
    return (first, *(t for t in found if t is not first))


def _reading_order(atom: Atom) -> tuple[int, str]:
    """Iterators (lower case) before sizes, names before calls: `i * BM * (K floordiv s)`."""
    if isinstance(atom, str):
        return (1 if atom[0].isupper() else 0), atom
    return 2, f"{atom.kind} {' '.join(map(str, atom.args))}"
