"""
Tile sizes as a user names them: `M=128 L=64 N`, keyed by symbol.

A size is a number, or left out to stay a symbol. The tile size of `M` is called `BM`; a
number becomes the fact `BM = 128` and never replaces the symbol, except for 1, which is
written as such because a dim of size 1 broadcasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.dims import Dim, symbol
from cleave.dialects.facts import Fact


def parse_tiles(text: str, noun: str = "tile") -> dict[str, int | None]:
    """
    Tile sizes by symbol, None for one that stays symbolic; `noun` is what messages call
    them.

    Raises PassFailedException for what is not a list of `NAME` and `NAME=NUMBER`.
    """
    tiles: dict[str, int | None] = {}
    for item in text.replace(",", " ").split():
        name, separator, size = item.partition("=")
        if not name.isidentifier() or (separator and not size.isdigit()):
            raise PassFailedException(
                f"{noun} '{item}' is not of the form SYMBOL or SYMBOL=SIZE"
            )
        if name in tiles:
            raise PassFailedException(f"two {noun}s for '{name}'")
        if separator and int(size) < 1:
            raise PassFailedException(f"{noun} {item} is not at least 1")
        tiles[name] = int(size) if separator else None
    return tiles


@dataclass
class TileSizes:
    """The tile sizes of one plan, as dims, with the symbols and facts they declare."""

    sizes: Mapping[str, int | None]
    taken: set[str]
    """Names that mean something else already."""
    symbols: list[str] = field(default_factory=list[str])
    facts: list[Fact] = field(default_factory=list[Fact])
    _dims: dict[str, Dim] = field(default_factory=dict[str, Dim])

    def of(self, name: str) -> Dim:
        """The tile size of a symbol that has one."""
        if name not in self._dims:
            self._dims[name] = self._declare(name, self.sizes[name])
        return self._dims[name]

    def _declare(self, name: str, size: int | None) -> Dim:
        if size == 1:
            return 1
        tile_name = fresh_name(f"B{name}", self.taken)
        self.taken.add(tile_name)
        self.symbols.append(tile_name)
        tile = symbol(tile_name)
        if size is not None:
            self.facts.append(Fact(tile, "=", size))
        return tile


def fresh_name(name: str, taken: Iterable[str]) -> str:
    """`name`, or `name_2`, `name_3`, ... where it is taken."""
    used = set(taken)
    candidate, number = name, 1
    while candidate in used:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
