"""
Dims: the sizes and offsets that types, tile maps and bounds are made of.

A dim is a Python `int` or a `SymbolicDim`, an integer expression over names:

    >>> M, i, BM = symbol("M"), symbol("i"), symbol("BM")
    >>> print((i + 1) * BM + ceildiv(M, BM))
    i * BM + BM + M ceildiv BM
    >>> floordiv(M * BM, M) == BM
    True
    >>> M - M + 4
    4

Every name is a non-negative integer; identity is by name. What else is known of names
(`M = 4096`, `s | K`, `M >= 1`) is a fact (`cleave.dialects.facts`); none is assumed
here: `K floordiv s * s` is not `K`. SymPy stands behind `SymbolicDim` and is
loaded when the first symbol appears; a program of integers never loads it.
"""

from collections.abc import Mapping
from functools import lru_cache

from cleave.dialects.dim_evaluation import compile_dims, evaluate
from cleave.dialects.dim_text import (
    DimSyntaxError,
    DimTokens,
    TextTokens,
    parse_dim_text,
    parse_dim_tokens,
)
from cleave.dialects.symbolic_dim import (
    Atom,
    Call,
    Dim,
    SymbolicDim,
    Term,
    atom_dim,
    call,
    map_atoms,
    names_of,
    symbol,
    terms_of,
)

__all__ = [
    "Atom",
    "Call",
    "Dim",
    "DimSyntaxError",
    "DimTokens",
    "SymbolicDim",
    "Term",
    "TextTokens",
    "ceildiv",
    "compile_dims",
    "dim_text",
    "evaluate",
    "floordiv",
    "maximum",
    "minimum",
    "mod",
    "names_of",
    "parse_dim_text",
    "parse_dim_tokens",
    "substitute",
    "symbol",
    "terms_of",
]


def floordiv(a: Dim, b: Dim) -> Dim:
    """The quotient rounded down, as by `//`. Raises ZeroDivisionError for b = 0."""
    return call("floordiv", (a, b))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """The quotient rounded up. Raises ZeroDivisionError for b = 0."""
    return call("ceildiv", (a, b))


def mod(a: Dim, b: Dim) -> Dim:
    """a - b * (a floordiv b), as by `%`. Raises ZeroDivisionError for b = 0."""
    return call("mod", (a, b))


def minimum(first: Dim, *others: Dim) -> Dim:
    return call("min", (first, *others))


def maximum(first: Dim, *others: Dim) -> Dim:
    return call("max", (first, *others))


def dim_text(dim: Dim) -> str:
    """The text of a dim; `parse_dim_text` reads it back equal."""
    return str(dim)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """
    The dim with names replaced, all at once, and folded again.

    Names without a value stay, and values may use names that are replaced. Raises
    ZeroDivisionError where a divisor becomes 0.
    """
    if isinstance(dim, int) or dim.names.isdisjoint(values):
        return dim
    used = sorted(dim.names & values.keys())
    return _substitute(dim, tuple((name, values[name]) for name in used))


@lru_cache(1 << 14)
def _substitute(dim: SymbolicDim, values: tuple[tuple[str, Dim], ...]) -> Dim:
    by_name = dict(values)

    def atom(a: Atom) -> Dim:
        if isinstance(a, Call):
            return call(a.kind, tuple(substitute(arg, by_name) for arg in a.args))
        return by_name[a] if a in by_name else atom_dim(a)

    return map_atoms(dim, atom)
