"""
The text of dims: MLIR's words, with names instead of d0 and s0.

    dim  ::= term ((`+` | `-`) term)*
    term ::= unit ((`*` | `floordiv` | `ceildiv` | `mod`) unit)*
    unit ::= NAME | INTEGER | `-` unit | `(` dim `)` | (`min` | `max`) `(` dim (`,` dim)* `)`

Operators of one line bind equally and to the left, as in MLIR: `z * C ceildiv BL` is
`(z * C) ceildiv BL`. The descent is written over `DimTokens`, so that the IR parser and
`parse_dim_text` share it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from cleave.dialects.symbolic_dim import (
    Atom,
    Dim,
    SymbolicDim,
    Term,
    call,
    symbol,
    terms_of,
)

DIVISIONS: Final = ("floordiv", "ceildiv", "mod")
EXTREMA: Final = ("min", "max")


# Printing


def dim_text(dim: Dim) -> str:
    """The text of a dim; `parse_dim_text` reads it back equal."""
    return str(dim)


def text_of_terms(terms: Sequence[Term]) -> str:
    text = ""
    for term in terms:
        if not text:
            text = ("-" if term.coefficient < 0 else "") + _term_text(term)
            # `-K floordiv s` would divide -K.
            if term.coefficient == -1 and _is_division(term):
                text = f"-({_term_text(term)})"
        else:
            text += (" - " if term.coefficient < 0 else " + ") + _term_text(term)
    return text or "0"


def _term_text(term: Term) -> str:
    """The term without its sign."""
    scale = abs(term.coefficient)
    if scale == 1 and _is_division(term):
        return _atom_text(term.factors[0][0])
    factors = [] if scale == 1 and term.factors else [str(scale)]
    for atom, exponent in term.factors:
        factors += [_unit_text(atom)] * exponent
    return " * ".join(factors)


def _is_division(term: Term) -> bool:
    """True for a division alone, up to its sign and scale."""
    if len(term.factors) != 1:
        return False
    ((atom, exponent),) = term.factors
    return exponent == 1 and not isinstance(atom, str) and atom.kind in DIVISIONS


def _atom_text(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    if atom.kind in EXTREMA:
        return f"{atom.kind}({', '.join(map(str, atom.args))})"
    a, b = atom.args
    return f"{_operand_text(a, products=True)} {atom.kind} {_operand_text(b, products=False)}"


def _unit_text(atom: Atom) -> str:
    text = _atom_text(atom)
    return text if isinstance(atom, str) or atom.kind in EXTREMA else f"({text})"


def _operand_text(dim: Dim, *, products: bool) -> str:
    """An operand of a division, in brackets unless it is a unit or, on the left, a product."""
    terms = terms_of(dim)
    if not terms:
        return "0"
    (first, *others) = terms
    if others or first.coefficient < 0 or _is_division(first):
        return f"({dim})"
    units = len(first.factors) + (first.coefficient != 1 or not first.factors)
    bare = products or (
        units == 1 and all(exponent == 1 for _, exponent in first.factors)
    )
    return str(dim) if bare else f"({dim})"


# Parsing


class DimTokens(Protocol):
    """What the descent asks of a token stream. Each call consumes what it returns."""

    def optional_punctuation(self, text: str) -> bool:
        """True if the next token is this single character."""
        ...

    def optional_keyword(self, words: Sequence[str]) -> str | None:
        """The next token if it is one of these words."""
        ...

    def optional_name(self) -> str | None:
        """The next token if it is an identifier."""
        ...

    def integer(self) -> int:
        """The next token, which must be an unsigned decimal integer."""
        ...

    def error(self, message: str) -> NoReturn:
        """Raises, naming the place of the next token."""
        ...


def parse_dim_tokens(tokens: DimTokens) -> Dim:
    """The longest dim at the front of the stream."""
    dim = _parse_term(tokens)
    while True:
        if tokens.optional_punctuation("+"):
            dim = dim + _parse_term(tokens)
        elif tokens.optional_punctuation("-"):
            dim = dim - _parse_term(tokens)
        else:
            return dim


def _parse_term(tokens: DimTokens) -> Dim:
    dim = _parse_unit(tokens)
    while True:
        if tokens.optional_punctuation("*"):
            dim = dim * _parse_unit(tokens)
        elif kind := tokens.optional_keyword(DIVISIONS):
            dim = _parse_division(tokens, kind, dim)
        else:
            return dim


def _parse_division(tokens: DimTokens, kind: str, dividend: Dim) -> Dim:
    divisor = _parse_unit(tokens)
    for division in DIVISIONS:
        if kind == division:
            try:
                return call(division, (dividend, divisor))
            except ZeroDivisionError as error:
                tokens.error(str(error))
    tokens.error(f"'{kind}' is no division")


def _parse_unit(tokens: DimTokens) -> Dim:
    if tokens.optional_punctuation("("):
        dim = parse_dim_tokens(tokens)
        _expect(tokens, ")")
        return dim
    if tokens.optional_punctuation("-"):
        return -_parse_unit(tokens)
    for extremum in EXTREMA:
        if tokens.optional_keyword((extremum,)):
            _expect(tokens, "(")
            args = [parse_dim_tokens(tokens)]
            while tokens.optional_punctuation(","):
                args.append(parse_dim_tokens(tokens))
            _expect(tokens, ")")
            return call(extremum, tuple(args))
    if (name := tokens.optional_name()) is not None:
        try:
            return symbol(name)
        except ValueError as error:
            tokens.error(str(error))
    return tokens.integer()


def _expect(tokens: DimTokens, punctuation: str) -> None:
    if not tokens.optional_punctuation(punctuation):
        tokens.error(f"expected '{punctuation}'")


class DimSyntaxError(ValueError):
    """Text that is not a dim; the message names the column, counted from 1."""


class TextTokens:
    """`DimTokens` over a string."""

    _TOKEN = re.compile(
        r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<integer>\d+)|(?P<punctuation>\S))"
    )

    def __init__(self, text: str):
        self.text = text
        self._end = 0
        self._advance()

    def _advance(self) -> None:
        # `_start` and `_end` are those of the next token, which is not consumed yet.
        self._match = self._TOKEN.match(self.text, self._end)
        if self._match is None:
            self._start = self._end = len(self.text)
        else:
            self._end = self._match.end()
            self._start = self._end - len(self._match[self._match.lastgroup or 0])

    def _optional(self, group: str) -> str | None:
        return None if self._match is None else self._match[group]

    def optional_punctuation(self, text: str) -> bool:
        found = self._optional("punctuation") == text
        if found:
            self._advance()
        return found

    def optional_keyword(self, words: Sequence[str]) -> str | None:
        return self.optional_name() if self._optional("name") in words else None

    def optional_name(self) -> str | None:
        name = self._optional("name")
        if name is not None:
            self._advance()
        return name

    def integer(self) -> int:
        digits = self._optional("integer")
        if digits is None:
            self.error("expected a name, an integer or '('")
        self._advance()
        return int(digits)

    def error(self, message: str) -> NoReturn:
        raise DimSyntaxError(f"{message} at column {self._start + 1} of '{self.text}'")

    def expect_end(self) -> None:
        if self._match is not None:
            self.error(f"unexpected '{self.text[self._start : self._end]}'")


def parse_dim_text(text: str) -> Dim:
    """The dim of a text. Raises DimSyntaxError, a ValueError that names the column."""
    tokens = TextTokens(text)
    dim = parse_dim_tokens(tokens)
    tokens.expect_end()
    return dim


__all__ = [
    "DimSyntaxError",
    "DimTokens",
    "SymbolicDim",
    "TextTokens",
    "dim_text",
    "parse_dim_text",
    "parse_dim_tokens",
    "text_of_terms",
]
