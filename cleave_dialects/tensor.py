"""
What both dialects share: dims and facts as attributes, the tensor type, and their text.

    !algebra.tensor<[b, m, K floordiv s], f16>
    #algebra.dim<K floordiv s>
    #algebra.fact<s | K>

The grammar of dims and facts is that of `cleave.dialects.dims` and
`cleave.dialects.facts`; here is only the adapter that lets xDSL's parser speak it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    StringAttr,
)
from xdsl.ir import (
    Attribute,
    Data,
    ParametrizedAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from cleave.dialects.dims import Dim, dim_text, parse_dim_tokens
from cleave.dialects.facts import Fact, Facts, parse_fact_tokens

Shape: TypeAlias = tuple[Dim, ...]

################################################################################
# Text                                                                         #
################################################################################


@dataclass
class _XdslTokens:
    """xDSL's parser seen through the token interface of the dim grammar."""

    parser: AttrParser
    after_minus: bool = False
    """Whether a minus that was read already comes first."""

    def optional_punctuation(self, text: str) -> bool:
        if self.after_minus:
            self.after_minus = text != "-"
            return text == "-"
        # The lexer has no two-character comparison: `>=` arrives as `>` and `=`.
        if self.parser.parse_optional_characters(text[0]) is None:
            return False
        for character in text[1:]:
            self.parser.parse_characters(character)
        return True

    def optional_keyword(self, words: Sequence[str]) -> str | None:
        for word in words:
            if self.parser.parse_optional_keyword(word) is not None:
                return word
        return None

    def optional_name(self) -> str | None:
        return self.parser.parse_optional_identifier()

    def integer(self) -> int:
        number = self.parser.parse_optional_integer(
            allow_boolean=False, allow_negative=False
        )
        if number is None:
            self.error("a dim is expected: a number, a symbol, or an expression")
        return number

    def error(self, message: str) -> NoReturn:
        self.parser.raise_error(message)


def parse_dim(parser: AttrParser, after_minus: bool = False) -> Dim:
    """Parse one dim expression, `(i + 1) * BM`, or what follows its minus sign."""
    return parse_dim_tokens(_XdslTokens(parser, after_minus))


def print_dim(printer: Printer, dim: Dim) -> None:
    printer.print_string(dim_text(dim))


def parse_dims(parser: AttrParser) -> Shape:
    """Parse a list of dims in square brackets, `[M, K floordiv s]`."""
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_dim(parser)
        )
    )


def print_dims(printer: Printer, dims: Sequence[Dim]) -> None:
    with printer.in_square_brackets():
        printer.print_list(dims, lambda dim: print_dim(printer, dim))


################################################################################
# Attributes                                                                   #
################################################################################


@irdl_attr_definition
class DimAttr(Data[Dim]):
    """A dim, `#algebra.dim<K floordiv s>`."""

    name = "algebra.dim"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dim:
        with parser.in_angle_brackets():
            return parse_dim(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_dim(printer, self.data)


@irdl_attr_definition
class FactAttr(Data[Fact]):
    """A declared fact about dims, `#algebra.fact<s | K>`."""

    name = "algebra.fact"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Fact:
        with parser.in_angle_brackets():
            return parse_fact_tokens(_XdslTokens(parser))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def dim_array(dims: Iterable[Dim]) -> ArrayAttr[DimAttr]:
    return ArrayAttr(DimAttr(dim) for dim in dims)


def dims_of(array: ArrayAttr[DimAttr]) -> Shape:
    return tuple([dim.data for dim in array.data])


ELEMENT_WIDTHS = (1, 32, 64)
"""Widths of the integer element types: masks are i1, positions i32, indices i64."""


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """
    A tensor of symbolic shape, `!algebra.tensor<[M, K floordiv s], f16>`.

    Elements are f16, bf16, f32, f64, i1 (masks), i32 or i64; rank 0 is a scalar.
    """

    name = "algebra.tensor"

    shape: ArrayAttr[DimAttr]
    element_type: Attribute

    def __init__(self, shape: Iterable[Dim], element_type: Attribute):
        super().__init__(dim_array(shape), element_type)

    @property
    def dims(self) -> Shape:
        return dims_of(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def with_dims(self, dims: Iterable[Dim]) -> TensorType:
        return TensorType(dims, self.element_type)

    def with_element(self, element_type: Attribute) -> TensorType:
        return TensorType(self.dims, element_type)

    def verify(self) -> None:
        element = self.element_type
        is_float = isinstance(
            element, Float16Type | BFloat16Type | Float32Type | Float64Type
        )
        is_integer = isa(element, IntegerType) and element.width.data in ELEMENT_WIDTHS
        if not is_float and not is_integer:
            raise VerifyException(
                f"element type {element} is not one of "
                "f16, bf16, f32, f64, i1, i32, i64"
            )
        for axis, dim in enumerate(self.dims):
            if isinstance(dim, int) and dim < 1:
                raise VerifyException(
                    f"dim {axis} of a tensor is {dim}, but dims are at least 1"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dims = parse_dims(parser)
            parser.parse_punctuation(",")
            return dim_array(dims), parser.parse_type()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_dims(printer, self.dims)
            printer.print_string(", ")
            printer.print_attribute(self.element_type)


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


################################################################################
# Symbols and facts of graphs and plans                                        #
################################################################################


def parse_symbols(parser: AttrParser) -> ArrayAttr[StringAttr]:
    """Parse declared symbols, `[M, K]`; none may be written as `[]` or left out."""
    names = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_identifier
    )
    return ArrayAttr(StringAttr(name) for name in names or ())


def print_symbols(printer: Printer, symbols: ArrayAttr[StringAttr]) -> None:
    if not len(symbols):
        return
    printer.print_string(" ")
    with printer.in_square_brackets():
        printer.print_list(symbols, lambda name: printer.print_string(name.data))


def parse_where(parser: AttrParser) -> ArrayAttr[FactAttr]:
    """Parse `where [s | K, M = 4096]`, if present."""
    if parser.parse_optional_keyword("where") is None:
        return ArrayAttr(())
    return ArrayAttr(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE,
            lambda: FactAttr(parse_fact_tokens(_XdslTokens(parser))),
        )
    )


def print_where(printer: Printer, facts: ArrayAttr[FactAttr]) -> None:
    if not len(facts):
        return
    printer.print_string(" where ")
    with printer.in_square_brackets():
        printer.print_list(facts, lambda fact: printer.print_string(str(fact.data)))


def facts_of(symbols: ArrayAttr[StringAttr], facts: ArrayAttr[FactAttr]) -> Facts:
    """The declared facts in a form that proves things; see `Facts`."""
    return Facts((fact.data for fact in facts), symbols=[name.data for name in symbols])


def require_declared(names: Iterable[str], declared: Iterable[str], where: str) -> None:
    """Raise VerifyException naming the first of `names` that is not `declared`."""
    known = list(declared)
    for name in sorted(names):
        if name not in known:
            raise VerifyException(
                f"{where} uses undeclared symbol '{name}' "
                f"(declared: {', '.join(known) or 'none'})"
            )
