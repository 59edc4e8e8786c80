"""Pieces of syntax that several operators and attributes share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from xdsl.ir import SSAValue
from xdsl.parser import AttrParser, Parser

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


def parse_tensor(parser: Parser) -> SSAValue[TensorType]:
    """Parse an operand whose type is not written, because its definition gave it."""
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error(f"{operand.span.text} is not defined here", operand.span)
    if not isinstance(type_ := values[operand.index].type, TensorType):
        parser.raise_error(
            f"{operand.span.text} is {type_}, not an algebra tensor", operand.span
        )
    return parser.resolve_operand(operand, type_)
