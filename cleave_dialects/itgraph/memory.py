"""Where tiles live, as `plan-memory` decides: `smem<swizzled>`, `rmem<fragment>`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.itgraph.parsing import parse_word

Space: TypeAlias = Literal["gmem", "smem", "rmem"]
Layout: TypeAlias = Literal["linear", "swizzled", "fragment"]

_LAYOUTS: Final[dict[Space, tuple[Layout, ...]]] = {
    "gmem": ("linear",),
    "smem": ("linear", "swizzled"),
    "rmem": ("linear", "fragment"),
}


@dataclass(frozen=True)
class Memory:
    """
    Where a tile lives and how it lies there.

    In SMEM `swizzled` avoids bank conflicts between tensor-core loads; in RMEM
    `fragment` is the register layout that a tensor-core operation dictates (paper
    appendix B).
    """

    space: Space
    layout: Layout = "linear"

    def __str__(self) -> str:
        return self.space if self.space == "gmem" else f"{self.space}<{self.layout}>"


@irdl_attr_definition
class MemoryAttr(Data[Memory]):
    """The placement of a tile, `#itgraph.memory<smem, swizzled>`."""

    name = "itgraph.memory"

    def verify(self) -> None:
        memory = self.data
        if memory.layout not in _LAYOUTS[memory.space]:
            raise VerifyException(
                f"a tile in {memory.space} is not {memory.layout} "
                f"but {' or '.join(_LAYOUTS[memory.space])}"
            )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Memory:
        with parser.in_angle_brackets():
            space = parse_word(parser, _LAYOUTS, "memory")
            if parser.parse_optional_punctuation(",") is None:
                return Memory(space)
            return Memory(space, parse_word(parser, get_args(Layout), "layout"))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.data.space}, {self.data.layout}")


def parse_memory(parser: AttrParser) -> MemoryAttr:
    """Parse `smem<swizzled>`, `rmem<fragment>`, `gmem`."""
    space = parse_word(parser, _LAYOUTS, "memory")
    if space == "gmem":
        return MemoryAttr(Memory(space))
    with parser.in_angle_brackets():
        layout: Layout = parse_word(parser, get_args(Layout), "layout")
    return MemoryAttr(Memory(space, layout))
