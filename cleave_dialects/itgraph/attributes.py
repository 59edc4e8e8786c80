"""Attributes of the levels: tmaps, iterator ranges, lookups of lets, loop states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias, cast, get_args

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.parsing import parse_word
from cleave.dialects.itgraph.tmap import Lookup, Range, Shape, TMap
from cleave.dialects.tensor import (
    DimAttr,
    dim_array,
    dims_of,
    parse_dim,
    parse_dims,
    print_dim,
    print_dims,
)
from cleave.dialects.wording import counted

# These hold their dims as `DimAttr`s and not inside of opaque data, so that one
# rewriting of DimAttr reaches every dim of a program.

################################################################################
# Dims                                                                         #
################################################################################


def dims_inside(attribute: Attribute) -> Iterator[Dim]:
    """Every dim anywhere in an attribute or type."""
    if isinstance(attribute, DimAttr):
        yield attribute.data
    elif isinstance(attribute, ArrayAttr):
        for element in cast(ArrayAttr[Attribute], attribute):
            yield from dims_inside(element)
    elif isinstance(attribute, DictionaryAttr):
        for element in attribute.data.values():
            yield from dims_inside(element)
    elif isinstance(attribute, ParametrizedAttribute):
        for parameter in attribute.parameters:
            yield from dims_inside(parameter)


################################################################################
# Tile maps                                                                    #
################################################################################


@irdl_attr_definition
class TMapAttr(ParametrizedAttribute):
    """A tmap, `#itgraph.tmap<[j * BL, gather] tile [BL, D]>`."""

    name = "itgraph.tmap"

    offsets: ArrayAttr[DimAttr]
    tile: ArrayAttr[DimAttr]
    gathers: ArrayAttr[IntegerAttr[I64]]

    def __init__(self, tmap: TMap):
        super().__init__(
            dim_array(tmap.offsets),
            dim_array(tmap.tile),
            ArrayAttr(IntegerAttr(dim, i64) for dim in tmap.gathers),
        )

    @property
    def tmap(self) -> TMap:
        return TMap(
            dims_of(self.offsets),
            dims_of(self.tile),
            tuple(dim.value.data for dim in self.gathers),
        )

    def verify(self) -> None:
        tmap = self.tmap
        if len(tmap.offsets) != len(tmap.tile):
            raise VerifyException(
                f"tmap has {counted(len(tmap.offsets), 'offset')} "
                f"but a tile of rank {tmap.rank}"
            )
        for axis, dim in enumerate(tmap.tile):
            if isinstance(dim, int) and dim < 1:
                raise VerifyException(
                    f"tmap: dim {axis} of the tile is {dim}, not >= 1"
                )
        if list(tmap.gathers) != sorted({*tmap.gathers} & {*range(tmap.rank)}):
            raise VerifyException(
                f"tmap: gathered dims {list(tmap.gathers)} are not ascending dims "
                f"of a tile of rank {tmap.rank}"
            )
        for axis in tmap.gathers:
            if tmap.offsets[axis] != 0:
                raise VerifyException(
                    f"tmap: dim {axis} is gathered and has offset {tmap.offsets[axis]}"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def offset() -> Dim | None:
            if parser.parse_optional_keyword("gather") is not None:
                return None
            return parse_dim(parser)

        with parser.in_angle_brackets():
            offsets = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, offset)
            parser.parse_keyword("tile")
            tile = parse_dims(parser)
        gathers = tuple(axis for axis, dim in enumerate(offsets) if dim is None)
        tmap = TMap(tuple(0 if dim is None else dim for dim in offsets), tile, gathers)
        return cls(tmap).parameters

    def print_parameters(self, printer: Printer) -> None:
        tmap = self.tmap

        def offset(axis: int) -> None:
            if axis in tmap.gathers:
                printer.print_string("gather")
            else:
                print_dim(printer, tmap.offsets[axis])

        with printer.in_angle_brackets():
            with printer.in_square_brackets():
                printer.print_list(range(len(tmap.offsets)), offset)
            printer.print_string(" tile ")
            print_dims(printer, tmap.tile)


@irdl_attr_definition
class RangeAttr(ParametrizedAttribute):
    """An iterator and its bounds, `#itgraph.range<j = 0 to L ceildiv BL>`."""

    name = "itgraph.range"

    iterator: StringAttr
    lo: DimAttr
    hi: DimAttr

    def __init__(self, range_: Range):
        super().__init__(
            StringAttr(range_.iterator), DimAttr(range_.lo), DimAttr(range_.hi)
        )

    @property
    def range(self) -> Range:
        return Range(self.iterator.data, self.lo.data, self.hi.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return cls(parse_range(parser)).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_range(printer, self.range)


def parse_range(parser: AttrParser) -> Range:
    iterator = parser.parse_identifier()
    parser.parse_punctuation("=")
    lo = parse_dim(parser)
    parser.parse_keyword("to")
    return Range(iterator, lo, parse_dim(parser))


def print_range(printer: Printer, range_: Range) -> None:
    printer.print_string(f"{range_.iterator} = ")
    print_dim(printer, range_.lo)
    printer.print_string(" to ")
    print_dim(printer, range_.hi)


@irdl_attr_definition
class LookupAttr(ParametrizedAttribute):
    """A let and the position in its table, `#itgraph.lookup<lo = [b + 1]>`."""

    name = "itgraph.lookup"

    let: StringAttr
    index: ArrayAttr[DimAttr]

    def __init__(self, lookup: Lookup):
        super().__init__(StringAttr(lookup.name), dim_array(lookup.index))

    @property
    def lookup(self) -> Lookup:
        return Lookup(self.let.data, dims_of(self.index))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            return cls(Lookup(name, parse_dims(parser))).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.let.data} = ")
            print_dims(printer, self.lookup.index)


################################################################################
# Loop states                                                                  #
################################################################################

StateKind: TypeAlias = Literal["carry", "sum", "max", "tiles"]
"""
What a loop does with the value that an iteration gives to a state: `carry` replaces it
(and the body may read it), `sum` adds, `max` keeps the larger, `tiles` writes a tile.
"""

STATE_KINDS: Final[tuple[StateKind, ...]] = get_args(StateKind)


@irdl_attr_definition
class StateAttr(ParametrizedAttribute):
    """How a state is updated, `#itgraph.state<tiles [0, j * BN]>`."""

    name = "itgraph.state"

    kind: StringAttr
    offsets: ArrayAttr[DimAttr]
    """Where a `tiles` state is written; empty for the other kinds."""

    def __init__(self, kind: StateKind, offsets: Shape = ()):
        super().__init__(StringAttr(kind), dim_array(offsets))

    def verify(self) -> None:
        if self.kind.data not in STATE_KINDS:
            raise VerifyException(
                f"state kind '{self.kind.data}' is not one of {', '.join(STATE_KINDS)}"
            )
        if len(self.offsets) and self.kind.data != "tiles":
            raise VerifyException(f"a '{self.kind.data}' state has no offsets")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind = parse_state_kind(parser)
            offsets = parse_dims(parser) if kind == "tiles" else ()
            return cls(kind, offsets).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.kind.data)
            if self.kind.data == "tiles":
                printer.print_string(" ")
                print_dims(printer, dims_of(self.offsets))


def parse_state_kind(parser: AttrParser) -> StateKind:
    return parse_word(parser, STATE_KINDS, "state kind")
