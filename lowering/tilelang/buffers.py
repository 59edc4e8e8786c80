"""Tiles as TileLang sees them: buffers on chip and slices of tensors in GMEM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.dims import Dim, SymbolicDim, floordiv, names_of, terms_of
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.tmap import TMap
from cleave.lowering.tilelang.text import dim_text, grouped


@dataclass(frozen=True)
class Spelling:
    """How dims are written in one generated function, and what is known of them."""

    facts: Facts
    symbols: Mapping[str, str]
    """Names of the module: sizes and tile sizes."""
    iterators: Mapping[str, str]

    @property
    def names(self) -> dict[str, str]:
        return {**self.symbols, **self.iterators}

    def local_names(self, dim: Dim) -> list[str]:
        """The iterators in a dim, as they are spelled."""
        used = sorted(names_of(dim) & self.iterators.keys())
        return [self.iterators[name] for name in used]

    def dim(self, dim: Dim) -> str:
        return dim_text(dim, self.names)

    def is_one(self, dim: Dim) -> bool:
        return self.facts.resolve(dim) == 1

    def kept(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        """The axes that a buffer has: TileLang sees no dims of size 1."""
        return tuple(axis for axis, dim in enumerate(dims) if not self.is_one(dim))


@dataclass(frozen=True)
class Buffer:
    """A tile in SMEM or RMEM, or part of one in SMEM."""

    name: str
    dims: tuple[Dim, ...]
    kept: tuple[int, ...]
    element: Attribute
    memory: Memory
    window: str = ""
    """The slice, `[0:64, i * 32 : (i + 1) * 32]`, where this is part of a tile."""

    @property
    def region(self) -> str:
        return self.name + self.window

    def allocation(self, spelling: Spelling) -> str:
        extents = [spelling.dim(self.dims[axis]) for axis in self.kept] or ["1"]
        shape = f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"
        where = "shared" if self.memory.space == "smem" else "fragment"
        return f'{self.name} = T.alloc_{where}({shape}, "{dtype_name(self.element)}")'

    def at(self, positions: Sequence[str]) -> str:
        """One element; `positions` has an entry for every dim of the tile."""
        indices = [positions[axis] for axis in self.kept] or ["0"]
        return f"{self.name}[{', '.join(indices)}]"


@dataclass(frozen=True)
class GlobalTile:
    """A tile of a tensor in GMEM that no level has loaded yet."""

    tensor: str
    dims: tuple[Dim, ...]
    """Of the whole tensor."""
    tmap: TMap
    element: Attribute

    def slice(self, spelling: Spelling) -> str:
        """`k[i_H, 0:D, i_L * BL : (i_L + 1) * BL]`."""
        axes = spelling.kept(self.dims) or (0,)
        ranges = [
            range_text(self.tmap.offsets[axis], self.tmap.tile[axis], spelling)
            for axis in axes
        ]
        return f"{self.tensor}[{', '.join(ranges)}]"


def range_text(offset: Dim, size: Dim, spelling: Spelling) -> str:
    """One dim of a slice: a position where the tile has size 1 there."""
    start = spelling.dim(offset)
    if spelling.is_one(size):
        return start
    end = _end_text(offset, size, spelling)
    is_short = all(text.isidentifier() or text.isdigit() for text in (start, end))
    return f"{start}:{end}" if is_short else f"{start} : {end}"


def _end_text(offset: Dim, size: Dim, spelling: Spelling) -> str:
    """`(i + 1) * B` where the offset is `i * B`, as one would write it."""
    if isinstance(size, SymbolicDim) and len(terms_of(offset)) == 1:
        count = floordiv(offset, size)
        if count * size == offset and len(terms_of(count)) == 1:
            return f"({spelling.dim(count)} + 1) * {grouped(spelling.dim(size))}"
    return spelling.dim(offset + size)
