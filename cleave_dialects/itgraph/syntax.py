"""
The text of levels: iterators, lets and views, shared by kernels and loops.

    (i_M = 0 to M ceildiv BM) let (lo = %starts[i_M])
        ins (%tq = %q[lo, 0] tile [BM, D] in smem<swizzled>, %gk = %k)

A view without offsets is the whole tensor.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.attributes import parse_range, print_range
from cleave.dialects.itgraph.level import Level
from cleave.dialects.itgraph.memory import Memory, parse_memory
from cleave.dialects.itgraph.parts import Let, View
from cleave.dialects.itgraph.tmap import Range, TMap
from cleave.dialects.tensor import (
    parse_dim,
    parse_dims,
    parse_tensor,
    print_dim,
    print_dims,
)


@dataclass(frozen=True)
class ParsedLevel:
    """The parts of a level, and its views as arguments of the region that follows."""

    ranges: list[Range]
    lets: list[Let]
    views: list[View]
    arguments: list[Parser.Argument]


def parse_level(parser: Parser) -> ParsedLevel:
    ranges = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parse_range(parser)
    )
    lets: list[Let] = []
    if parser.parse_optional_keyword("let") is not None:
        lets = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_let(parser)
        )
    views: list[tuple[Parser.Argument, View]] = []
    if parser.parse_optional_keyword("ins") is not None:
        views = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_view(parser)
        )
    return ParsedLevel(ranges, lets, [v for _, v in views], [a for a, _ in views])


def print_level(printer: Printer, level: Level) -> None:
    """Print what `parse_level` reads, each clause on its own line."""
    printer.print_string(" ")
    with printer.in_parens():
        printer.print_list(level.ranges, lambda r: print_range(printer, r))
    if lets := level.lets:
        with clause(printer, "let"):
            printer.print_list(lets, lambda let: _print_let(printer, let))
    if views := level.views:
        with clause(printer, "ins"):
            printer.print_list(
                zip(level.view_arguments, views, strict=True),
                lambda pair: _print_view(printer, *pair),
            )


@contextmanager
def clause(printer: Printer, word: str) -> Generator[None]:
    """Print `word (...)` on a new line, indented deeper than the body of the level."""
    with printer.indented(2):
        printer.print_string(f"\n{word} ")
    with printer.in_parens():
        yield


def print_attributes(printer: Printer, attributes: Mapping[str, Attribute]) -> None:
    """Print `attributes {...}` on a new line, if there are any."""
    if attributes:
        with printer.indented(2):
            printer.print_string("\nattributes ")
            printer.print_attr_dict(attributes)


def parse_placement(parser: Parser) -> Memory | None:
    """Parse `in smem<swizzled>`, if present."""
    if parser.parse_optional_keyword("in") is None:
        return None
    return parse_memory(parser).data


def print_placement(printer: Printer, memory: Memory | None) -> None:
    if memory is not None:
        printer.print_string(f" in {memory}")


def _parse_let(parser: Parser) -> Let:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    return Let(name, parse_tensor(parser), parse_dims(parser))


def _print_let(printer: Printer, let: Let) -> None:
    printer.print_string(f"{let.name} = ")
    printer.print_ssa_value(let.table)
    print_dims(printer, let.index)


def _parse_view(parser: Parser) -> tuple[Parser.Argument, View]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    source = parse_tensor(parser)
    offsets = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: _parse_offset(parser)
    )
    if offsets is None:
        tmap, indices = TMap.whole(source.type.dims), ()
    else:
        parser.parse_keyword("tile")
        indices = tuple(x for x in offsets if isinstance(x, SSAValue))
        tmap = TMap(
            tuple(0 if isinstance(x, SSAValue) else x for x in offsets),
            parse_dims(parser),
            tuple(i for i, x in enumerate(offsets) if isinstance(x, SSAValue)),
        )
    view = View(source, tmap, indices, parse_placement(parser))
    return argument.resolve(view.type), view


def _parse_offset(parser: Parser) -> Dim | SSAValue:
    """An offset, or the index vector of a gather, `gather %ti`."""
    if parser.parse_optional_keyword("gather") is not None:
        return parse_tensor(parser)
    return parse_dim(parser)


def _print_view(printer: Printer, argument: SSAValue, view: View) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(view.source)
    if not view.is_whole:
        gathers = dict(zip(view.tmap.gathers, view.gathers, strict=True))

        def offset(axis: int) -> None:
            if axis in gathers:
                printer.print_string("gather ")
                printer.print_ssa_value(gathers[axis])
            else:
                print_dim(printer, view.tmap.offsets[axis])

        with printer.in_square_brackets():
            printer.print_list(range(view.tmap.rank), offset)
        printer.print_string(" tile ")
        print_dims(printer, view.tmap.tile)
    print_placement(printer, view.memory)
