"""
Reading dims: MLIR's words, with names instead of d0 and s0.

    dim  ::= term ((`+` | `-`) term)*
    term ::= unit ((`*` | `floordiv` | `ceildiv` | `mod`) unit)*
    unit ::= NAME | INTEGER | `-` unit | `(` dim `)`
           | (`min` | `max`) `(` dim (`,` dim)* `)`

Operators of one line bind equally and to the left, as in MLIR: `z * C ceildiv BL` is
`(z * C) ceildiv BL`. The descent is written over `DimTokens`, so that the IR parser and
`parse_dim_text` share it. `str` of a dim prints what this reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn, Protocol

from cleave.dialects.symbolic_dim import (
    DIVISIONS,
    EXTREMA,
    Dim,
    DivisionKind,
    call,
    symbol,
)


class DimTokens(Protocol):
    """What the descent asks of a token stream. Each call consumes what it returns."""

    def optional_punctuation(self, text: str, /) -> bool:
        """True if the next token is this single character."""
        ...

    def optional_keyword(self, words: Sequence[str], /) -> str | None:
        """The next token if it is one of these words."""
        ...

    def optional_name(self) -> str | None:
        """The next token if it is an identifier."""
        ...

    def integer(self) -> int:
        """The next token, which must be an unsigned decimal integer."""
        ...

    def error(self, message: str, /) -> NoReturn:
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
            continue
        for kind in DIVISIONS:
            if tokens.optional_keyword((kind,)):
                dim = _divide(tokens, kind, dim, _parse_unit(tokens))
                break
        else:
            return dim


def _divide(tokens: DimTokens, kind: DivisionKind, a: Dim, b: Dim) -> Dim:
    try:
        return call(kind, (a, b))
    except ZeroDivisionError as error:
        tokens.error(str(error))


def _parse_unit(tokens: DimTokens) -> Dim:
    if tokens.optional_punctuation("("):
        dim = parse_dim_tokens(tokens)
        _expect(tokens, ")")
        return dim
    if tokens.optional_punctuation("-"):
        return -_parse_unit(tokens)
    kind = next((k for k in EXTREMA if tokens.optional_keyword((k,))), None)
    if kind is not None:
        _expect(tokens, "(")
        args = [parse_dim_tokens(tokens)]
        while tokens.optional_punctuation(","):
            args.append(parse_dim_tokens(tokens))
        _expect(tokens, ")")
        return call(kind, tuple(args))
    if (name := tokens.optional_name()) is not None:
        try:
            return symbol(name)
        except ValueError as error:
            tokens.error(str(error))
    return tokens.integer()


def _expect(tokens: DimTokens, punctuation: str) -> None:
    if not tokens.optional_punctuation(punctuation):
        tokens.error(f"expected '{punctuation}'")


# Strings


class DimSyntaxError(ValueError):
    """Text that is no dim; the message names the column, counted from 1."""


class TextTokens:
    """`DimTokens` over a string."""

    _TOKEN = re.compile(
        r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<integer>[0-9]+)|(?P<punctuation>\S))"
    )

    def __init__(self, text: str):
        self._text = text
        self._end = 0
        self._advance()

    def _advance(self) -> None:
        """Makes the token after the next one the next one."""
        self._next = self._TOKEN.match(self._text, self._end)
        self._kind = self._next and self._next.lastgroup
        self._word = self._next[self._kind] if self._next and self._kind else ""
        self._end = self._next.end() if self._next else len(self._text)

    def optional_punctuation(self, text: str, /) -> bool:
        found = self._kind == "punctuation" and self._word == text
        if found:
            self._advance()
        return found

    def optional_keyword(self, words: Sequence[str], /) -> str | None:
        return self.optional_name() if self._word in words else None

    def optional_name(self) -> str | None:
        if self._kind != "name":
            return None
        name = self._word
        self._advance()
        return name

    def integer(self) -> int:
        if self._kind != "integer":
            self.error("expected a name, an integer or '('")
        value = int(self._word)
        self._advance()
        return value

    def end(self) -> None:
        """Raises unless everything is consumed."""
        if self._next:
            self.error(f"unexpected '{self._word}'")

    def error(self, message: str, /) -> NoReturn:
        column = self._end - len(self._word) + 1
        raise DimSyntaxError(f"{message} at column {column} of '{self._text}'")


def parse_dim_text(text: str) -> Dim:
    """The dim of a text. Raises DimSyntaxError, which names the column."""
    tokens = TextTokens(text)
    dim = parse_dim_tokens(tokens)
    tokens.end()
    return dim
