"""
Parameters of operators: how each kind is held in IR, written as text, and read as data.

An operator declares its parameters once (`PARAMS`); its properties, its syntax and the
plain values that passes and the search work on all follow from that declaration.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from cleave.dialects.tensor import (
    DimAttr,
    dim_array,
    dims_of,
    parse_dim,
    parse_dims,
    print_dim,
    print_dims,
)

Params: TypeAlias = Mapping[str, Any]
"""Parameters by name as plain values: int, bool, str, float, Dim, tuples, or a type."""

WITHOUT_POINT: Final = re.compile(r"(\d+)([eE][+-]?\d+)")
"""A float as other languages have it; for MLIR it is an integer and a name."""


@dataclass(frozen=True)
class Param(ABC):
    """One parameter, the property `name`; after the operands stands `word value`."""

    name: str
    word: str = ""
    optional: bool = False

    @property
    def keyword(self) -> str:
        return self.word or self.name

    def parse_optional(self, parser: Parser) -> Attribute | None:
        if parser.parse_optional_keyword(self.keyword) is None:
            if self.optional:
                return None
            parser.raise_error(f"expected '{self.keyword}'")
        return self.parse_value(parser)

    def print(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(f" {self.keyword}")
        self.print_value(printer, attribute)

    @abstractmethod
    def encode(self, value: Any) -> Attribute: ...

    @abstractmethod
    def decode(self, attribute: Attribute) -> Any: ...

    @abstractmethod
    def parse_value(self, parser: Parser) -> Attribute: ...

    @abstractmethod
    def print_value(self, printer: Printer, attribute: Attribute) -> None: ...


class Axis(Param):
    """The position of a dim, `dim 1`."""

    def encode(self, value: Any) -> Attribute:
        return IntegerAttr(value, i64)

    def decode(self, attribute: Attribute) -> int:
        return cast(IntegerAttr, attribute).value.data

    def parse_value(self, parser: Parser) -> Attribute:
        return self.encode(parser.parse_integer(allow_boolean=False))

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(f" {self.decode(attribute)}")


class Axes(Param):
    """Several positions, `permutation [0, 2, 1]`."""

    def encode(self, value: Any) -> Attribute:
        return ArrayAttr(IntegerAttr(axis, i64) for axis in value)

    def decode(self, attribute: Attribute) -> tuple[int, ...]:
        array = cast(ArrayAttr[IntegerAttr], attribute)
        return tuple(axis.value.data for axis in array)

    def parse_value(self, parser: Parser) -> Attribute:
        return self.encode(
            parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE,
                lambda: parser.parse_integer(allow_boolean=False),
            )
        )

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(f" {list(self.decode(attribute))}")


class Flag(Param):
    """Present or absent, `transpose_rhs`; as data `True` or not there."""

    def encode(self, value: Any) -> Attribute:
        return UnitAttr()

    def decode(self, attribute: Attribute) -> bool:
        return True

    def parse_value(self, parser: Parser) -> Attribute:
        return UnitAttr()

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        return


class Word(Param):
    """A bare word, `precision tf32`."""

    def encode(self, value: Any) -> Attribute:
        return StringAttr(value)

    def decode(self, attribute: Attribute) -> str:
        return cast(StringAttr, attribute).data

    def parse_value(self, parser: Parser) -> Attribute:
        return StringAttr(parser.parse_identifier())

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(f" {self.decode(attribute)}")


class DimParam(Param):
    """A dim expression, `count s`."""

    def encode(self, value: Any) -> Attribute:
        return DimAttr(value)

    def decode(self, attribute: Attribute) -> Any:
        return cast(DimAttr, attribute).data

    def parse_value(self, parser: Parser) -> Attribute:
        return DimAttr(parse_dim(parser))

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(" ")
        print_dim(printer, self.decode(attribute))


class DimsParam(Param):
    """A shape, `to [8, 4, M, D]`."""

    def encode(self, value: Any) -> Attribute:
        return dim_array(value)

    def decode(self, attribute: Attribute) -> Any:
        return dims_of(cast(ArrayAttr[DimAttr], attribute))

    def parse_value(self, parser: Parser) -> Attribute:
        return dim_array(parse_dims(parser))

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(" ")
        print_dims(printer, self.decode(attribute))


class ElementType(Param):
    """An element type, `to f16`."""

    def encode(self, value: Any) -> Attribute:
        return value

    def decode(self, attribute: Attribute) -> Attribute:
        return attribute

    def parse_value(self, parser: Parser) -> Attribute:
        return parser.parse_type()

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(" ")
        printer.print_attribute(attribute)


class Number(Param):
    """
    A real number or a dim expression, written without a word: `0.125`, `-inf`, `K`.

    An integer is a dim; a number with a point, an exponent, or `inf` is a float.
    """

    def encode(self, value: Any) -> Attribute:
        return FloatAttr(value, f64) if isinstance(value, float) else DimAttr(value)

    def decode(self, attribute: Attribute) -> Any:
        if isinstance(attribute, DimAttr):
            return attribute.data
        return cast(FloatAttr, attribute).value.data

    def parse_optional(self, parser: Parser) -> Attribute | None:
        return self.parse_value(parser)

    def parse_value(self, parser: Parser) -> Attribute:
        negative = parser.parse_optional_punctuation("-") is not None
        if parser.parse_optional_keyword("inf") is not None:
            return self.encode(-float("inf") if negative else float("inf"))
        # The lexer tells 1 from 1.0.
        if (number := parser.parse_optional_float(allow_negative=False)) is not None:
            return self.encode(-number if negative else number)
        if written := WITHOUT_POINT.match(parser.lexer.input.content, parser.pos):
            whole, exponent = written.groups()
            parser.raise_error(
                f"the number {written[0]} has no point before its exponent: "
                f"write {whole}.0{exponent}",
                *written.span(),
            )
        return DimAttr(parse_dim(parser, after_minus=negative))

    def print(self, printer: Printer, attribute: Attribute) -> None:
        self.print_value(printer, attribute)

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(" ")
        value = self.decode(attribute)
        if not isinstance(value, float):
            print_dim(printer, value)
        elif isinf(value):
            printer.print_string("-inf" if value < 0 else "inf")
        else:
            text = repr(value)
            # MLIR wants a point in front of an exponent: 1e-06 is 1.0e-06 there.
            if "." not in text:
                text = text.replace("e", ".0e")
            printer.print_string(text)
