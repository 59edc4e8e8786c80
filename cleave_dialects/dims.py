"""
Dims: the sizes and offsets that types, tile maps and bounds are made of.

A dim is a Python `int` or a `SymbolicDim`, an integer expression over names:

    >>> M, i, BM = symbol("M"), symbol("i"), symbol("BM")
    >>> print((i + 1) * BM + ceildiv(M, BM))
    i * BM + BM + M ceildiv BM
    >>> M * BM // M == BM
    True
    >>> M - M + 4
    4

Every name is a non-negative integer; identity is by name. What else is known about a name
(`M = 4096`, `s | K`, `M >= 1`) is a fact (`cleave.dialects.facts`) and never assumed here:
`K floordiv s * s` is not `K`. SymPy stands behind `SymbolicDim` and is imported when the
first symbol appears; a program of integers never loads it.
"""

from cleave.dialects.dim_evaluation import compile_dims, evaluate
from cleave.dialects.dim_text import (
    DimSyntaxError,
    DimTokens,
    TextTokens,
    dim_text,
    parse_dim_text,
    parse_dim_tokens,
)
from cleave.dialects.symbolic_dim import (
    Atom,
    Call,
    Dim,
    SymbolicDim,
    Term,
    call,
    ceildiv,
    floordiv,
    maximum,
    minimum,
    mod,
    names_of,
    substitute,
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
    "call",
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
