"""
`SymbolicDim`, the symbolic integer behind every dim: arithmetic, structure and text.

Imported through `cleave.dialects.dims`. SymPy is loaded when the first symbol appears.
"""

# Operators answer NotImplemented to what is no dim, for callers pyright does not see.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

if TYPE_CHECKING:
    from cleave.dialects.dim_algebra import Expression

Dim: TypeAlias = "int | SymbolicDim"

DivisionKind: TypeAlias = Literal["floordiv", "ceildiv", "mod"]
ExtremumKind: TypeAlias = Literal["min", "max"]
CallKind: TypeAlias = DivisionKind | ExtremumKind

DIVISIONS: Final[tuple[DivisionKind, ...]] = get_args(DivisionKind)
EXTREMA: Final[tuple[ExtremumKind, ...]] = get_args(ExtremumKind)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# A scheduler asks for the same few sums and products thousands of times, and SymPy
# takes tens of microseconds for each.
_CACHE_SIZE = 1 << 14


class SymbolicDim:
    """
    An integer expression over names: a sum of products of names and of the calls
    `floordiv`, `ceildiv`, `mod`, `min`, `max`. Immutable and hashable.

    Polynomially equal expressions are equal, and a constant is never a `SymbolicDim`:
    every operation returns an `int` where the names cancel. `str` is the text syntax,
    `repr` the same in quotes. `//` and `%` are `floordiv` and `mod`, as for integers.
    """

    __slots__ = ("_expression", "_hash", "_names", "_terms", "_text")

    def __init__(self, expression: Expression):
        """Not for callers: `symbol` and arithmetic make dims, in canonical form."""
        self._expression = expression
        self._hash = hash(expression)
        self._names: frozenset[str] | None = None
        self._terms: tuple[Term, ...] | None = None
        self._text: str | None = None

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
            self._terms = _terms(self._expression)
        return self._terms

    @staticmethod
    def expression_of(dim: Dim) -> Expression:
        """Not for callers: what SymPy computes with."""
        from cleave.dialects import dim_algebra

        return dim_algebra.integer(dim) if isinstance(dim, int) else dim._expression

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SymbolicDim):
            return NotImplemented
        return self._hash == other._hash and bool(self._expression == other._expression)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self.terms)
        return self._text

    def __repr__(self) -> str:
        return f"'{self}'"

    def __reduce__(self):
        return _dim, (self._expression,)

    def __add__(self, other: Dim) -> Dim:
        return _add(self, other) if isinstance(other, _DIM) else NotImplemented

    def __sub__(self, other: Dim) -> Dim:
        return _add(self, -other) if isinstance(other, _DIM) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        return _multiply(self, other) if isinstance(other, _DIM) else NotImplemented

    def __floordiv__(self, other: Dim) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return call("floordiv", (self, other))

    def __mod__(self, other: Dim) -> Dim:
        return call("mod", (self, other)) if isinstance(other, _DIM) else NotImplemented

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: int) -> Dim:
        return _add(-self, other) if isinstance(other, int) else NotImplemented

    def __rfloordiv__(self, other: int) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return call("floordiv", (other, self))

    def __rmod__(self, other: int) -> Dim:
        return call("mod", (other, self)) if isinstance(other, int) else NotImplemented

    def __neg__(self) -> SymbolicDim:
        return cast(SymbolicDim, _multiply(self, -1))


_DIM = (int, SymbolicDim)


@dataclass(frozen=True, slots=True)
class Call:
    """A division that does not cancel (two arguments), `min` or `max` (two or more)."""

    kind: CallKind
    args: tuple[Dim, ...]


Atom: TypeAlias = str | Call
"""A name or a call: what a polynomial is a polynomial in."""


@dataclass(frozen=True, slots=True)
class Term:
    """An integer times a product of atoms: names first, each with an exponent >= 1."""

    coefficient: int
    factors: tuple[tuple[Atom, int], ...]

    @property
    def degree(self) -> int:
        return sum(exponent for _, exponent in self.factors)

    @property
    def dim(self) -> Dim:
        factors = [atom_dim(a) for a, exponent in self.factors for _ in range(exponent)]
        return reduce(_multiply, factors, self.coefficient)

    @property
    def division(self) -> Call | None:
        """The division that the term is, up to its coefficient."""
        match self.factors:
            case ((Call(kind) as atom, 1),) if kind in DIVISIONS:
                return atom
            case _:
                return None


# Construction


def symbol(name: str) -> SymbolicDim:
    """
    The symbol of this name, a non-negative integer.

    Two symbols of one name are the same symbol. Raises ValueError for a name that does
    not read as a symbol in the text syntax.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' cannot be the name of a symbol")
    if name in DIVISIONS or name in EXTREMA:
        raise ValueError(f"'{name}' is a word of dim expressions, not a symbol")
    return _symbol(name)


@lru_cache(_CACHE_SIZE)
def call(kind: CallKind, args: tuple[Dim, ...]) -> Dim:
    """
    The call of this kind, folded where it can be: two arguments for a division, one or
    more for `min` and `max`. Raises ZeroDivisionError for a divisor of 0.
    """
    if kind in DIVISIONS and args[1] == 0:
        dividend = _text_of_operand(args[0], left=True)
        raise ZeroDivisionError(f"division by zero: {dividend} {kind} 0")
    integers = tuple(arg for arg in args if isinstance(arg, int))
    if len(integers) == len(args):
        return _call_integers(kind, integers)
    from cleave.dialects import dim_algebra

    return _dim(dim_algebra.call(kind, [SymbolicDim.expression_of(a) for a in args]))


def atom_dim(atom: Atom) -> Dim:
    """An atom as a dim; unlike `symbol`, takes names that no text can spell."""
    return _symbol(atom) if isinstance(atom, str) else call(atom.kind, atom.args)


def map_atoms(dim: Dim, function: Callable[[Atom], Dim]) -> Dim:
    """The dim with every name and call outside of calls replaced, and folded again."""
    total: Dim = 0
    for term in terms_of(dim):
        product: Dim = term.coefficient
        for atom, exponent in term.factors:
            replaced = function(atom)
            for _ in range(exponent):
                product = product * replaced
        total = total + product
    return total


def _dim(expression: Expression) -> Dim:
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

    return _dim(
        dim_algebra.add(SymbolicDim.expression_of(a), SymbolicDim.expression_of(b))
    )


@lru_cache(_CACHE_SIZE)
def _multiply(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    from cleave.dialects import dim_algebra

    return _dim(
        dim_algebra.multiply(SymbolicDim.expression_of(a), SymbolicDim.expression_of(b))
    )


def _call_integers(kind: CallKind, args: tuple[int, ...]) -> int:
    if kind == "min":
        return min(args)
    if kind == "max":
        return max(args)
    a, b = args
    return a // b if kind == "floordiv" else -(-a // b) if kind == "ceildiv" else a % b


# Structure


def names_of(dim: Dim) -> frozenset[str]:
    return frozenset() if isinstance(dim, int) else dim.names


def terms_of(dim: Dim) -> tuple[Term, ...]:
    """The terms whose sum the dim is, in the order of the text; none for 0."""
    if isinstance(dim, int):
        return (Term(dim, ()),) if dim else ()
    return dim.terms


def _terms(expression: Expression) -> tuple[Term, ...]:
    from cleave.dialects import dim_algebra

    def atom(part: Expression) -> Atom:
        name_or_call = dim_algebra.atom_parts(part)
        if isinstance(name_or_call, str):
            return name_or_call
        kind, args = name_or_call
        return Call(cast(CallKind, kind), tuple(_dim(arg) for arg in args))

    terms: list[Term] = []
    for monomial, coefficient in dim_algebra.polynomial(expression).items():
        factors = [(atom(part), exponent) for part, exponent in monomial]
        factors.sort(key=lambda factor: _reading_order(factor[0]))
        terms.append(Term(coefficient, tuple(factors)))
    terms.sort(key=lambda t: (-t.degree, [_reading_order(a) for a, _ in t.factors]))
    # `M - K * s` reads better than `-K * s + M`.
    first = next((t for t in terms if t.coefficient > 0), terms[0])
    return (first, *(t for t in terms if t is not first))


def _reading_order(atom: Atom) -> tuple[int, str]:
    """Iterators (lower case) before sizes before calls: `i * BM * (K floordiv s)`."""
    if isinstance(atom, str):
        return (1 if atom[0].isupper() else 0), atom
    return 2, f"{atom.kind} {', '.join(map(str, atom.args))}"


# Text


def _text(terms: Sequence[Term]) -> str:
    first, *others = terms
    text = _text_unsigned(first)
    if first.coefficient < 0:
        # `-K floordiv s` would divide -K.
        text = (
            f"-({text})" if first.coefficient == -1 and first.division else f"-{text}"
        )
    for term in others:
        text += f" {'-' if term.coefficient < 0 else '+'} {_text_unsigned(term)}"
    return text


def _text_unsigned(term: Term) -> str:
    scale = abs(term.coefficient)
    if scale == 1 and term.division:
        return _text_of_atom(term.division)
    factors = [] if scale == 1 and term.factors else [str(scale)]
    for atom, exponent in term.factors:
        text = _text_of_atom(atom)
        if isinstance(atom, Call) and atom.kind in DIVISIONS:
            text = f"({text})"
        factors += [text] * exponent
    return " * ".join(factors)


def _text_of_atom(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    if atom.kind in EXTREMA:
        return f"{atom.kind}({', '.join(map(str, atom.args))})"
    a, b = atom.args
    return f"{_text_of_operand(a, left=True)} {atom.kind} {_text_of_operand(b)}"


def _text_of_operand(dim: Dim, *, left: bool = False) -> str:
    """In brackets, unless a product on the left or a single factor on the right."""
    match terms_of(dim):
        case ():
            return "0"
        case (Term(coefficient) as term,) if coefficient > 0 and not term.division:
            factors = term.degree + (coefficient != 1 or term.degree == 0)
            return str(dim) if left or factors == 1 else f"({dim})"
        case _:
            return f"({dim})"
