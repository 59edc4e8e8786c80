"""Pieces of syntax that several operators and attributes share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from xdsl.parser import AttrParser

from cleave.dialects.tensor import TensorType

_Word = TypeVar("_Word", bound=str)


def parse_word(parser: AttrParser, words: Iterable[_Word], what: str) -> _Word:
    """Parse one of the words, which together are called `what`."""
    for word in words:
        if parser.parse_optional_keyword(word) is not None:
            return word
    parser.raise_error(f"expected a {what}: {', '.join(words)}")


def parse_tensor_type(parser: AttrParser) -> TensorType:
    start = parser.pos
    if not isinstance(type_ := parser.parse_type(), TensorType):
        parser.raise_error(f"{type_} is not an algebra tensor", start, parser.pos)
    return type_
