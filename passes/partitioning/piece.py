"""
The attribute `kernel` of a piece: which part of a graph it is, and what it is fed with.

    attributes {kernel = {of = "norm_cut1", number = 1 : i64, count = 2 : i64,
                          symbols = ["M", "K", "N"],
                          operands = ["input 0", "input 1", "kernel 0 result 0"],
                          results = ["output 0"], cut = @norm}}

Scheduling hands it on to the plan of the piece; `composition` makes one plan of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation

KERNEL = "kernel"
"""The name of the attribute."""

PASSED_ON = "passed on"


@dataclass(frozen=True)
class Input:
    """An operand of a piece that is an input of the whole."""

    position: int

    def __str__(self) -> str:
        return f"input {self.position}"


@dataclass(frozen=True)
class Earlier:
    """An operand of a piece that is a result of a piece before it."""

    number: int
    result: int

    def __str__(self) -> str:
        return f"kernel {self.number} result {self.result}"


Operand: TypeAlias = Input | Earlier


@dataclass(frozen=True)
class Piece:
    """
    Piece `number` of the `count` pieces of the graph called `of`.

    `symbols` are those of the whole: sizes, which mean the same in all pieces. An
    element of `results` is the position of an output of the whole, or None for what is
    only passed on to later pieces. `whole` has attributes that the whole is to have.
    """

    of: str
    number: int
    count: int
    symbols: tuple[str, ...]
    operands: tuple[Operand, ...]
    results: tuple[int | None, ...]
    whole: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])

    @property
    def attribute(self) -> DictionaryAttr:
        results = [PASSED_ON if r is None else f"output {r}" for r in self.results]
        return DictionaryAttr(
            {
                "of": StringAttr(self.of),
                "number": IntegerAttr(self.number, i64),
                "count": IntegerAttr(self.count, i64),
                "symbols": _texts(self.symbols),
                "operands": _texts(str(operand) for operand in self.operands),
                "results": _texts(results),
                **self.whole,
            }
        )


def piece_of(op: Operation) -> Piece | None:
    """
    The piece that a graph or plan is; None for one that is whole.

    Raises ValueError for an attribute `kernel` that does not read as one.
    """
    if (attribute := op.attributes.get(KERNEL)) is None:
        return None
    try:
        entries = dict(cast(DictionaryAttr, attribute).data)
        return Piece(
            of=cast(StringAttr, entries.pop("of")).data,
            number=_integer(entries.pop("number")),
            count=_integer(entries.pop("count")),
            symbols=tuple(_read(entries.pop("symbols"))),
            operands=tuple(map(_operand, _read(entries.pop("operands")))),
            results=tuple(map(_result, _read(entries.pop("results")))),
            whole=entries,
        )
    except (AttributeError, KeyError, ValueError) as error:
        raise ValueError(
            f"'{op.name}' op: {attribute} says of no kernel: {error}"
        ) from error


def _texts(texts: Iterable[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr(map(StringAttr, texts))


def _read(attribute: Attribute) -> list[str]:
    return [text.data for text in cast(ArrayAttr[StringAttr], attribute)]


def _integer(attribute: Attribute) -> int:
    return cast(IntegerAttr, attribute).value.data


def _operand(text: str) -> Operand:
    match text.split():
        case ["input", position]:
            return Input(int(position))
        case ["kernel", number, "result", result]:
            return Earlier(int(number), int(result))
        case _:
            raise ValueError(f"'{text}' is no operand")


def _result(text: str) -> int | None:
    match text.split():
        case ["output", position]:
            return int(position)
        case _ if text == PASSED_ON:
            return None
        case _:
            raise ValueError(f"'{text}' is no result")
