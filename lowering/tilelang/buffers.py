"""Tiles as TileLang sees them: buffers on chip and slices of tensors in GMEM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from cleave.dialects.algebra.dtypes import element_bytes, stored_name
from cleave.dialects.dims import Dim, SymbolicDim, floordiv, names_of, terms_of
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.tmap import TMap
from cleave.lowering.tilelang.text import dim_text, grouped
from cleave.passes.memory.bulk import moves_in_bulk

WORD_BYTES = 4


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

    def extents(self, dims: Sequence[Dim]) -> list[str]:
        """The shape of a buffer for a tile; that of a single element is 1."""
        return [self.dim(dims[axis]) for axis in self.kept(dims)] or ["1"]

    def shape(self, dims: Sequence[Dim]) -> str:
        """The same as a tuple, `(BM, D)`."""
        extents = self.extents(dims)
        return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def dtype_text(element: Attribute, is_tf32: bool) -> str:
    """What TileLang is told that elements are."""
    return "T.tfloat32" if is_tf32 else f'"{stored_name(element)}"'


@dataclass(frozen=True)
class Buffer:
    """A tile in SMEM or RMEM, or part of one in SMEM."""

    name: str
    dims: tuple[Dim, ...]
    kept: tuple[int, ...]
    element: Attribute
    memory: Memory
    window: Window | None = None
    is_tf32: bool = False
    """Only tensor cores read it, which round it."""

    @property
    def region(self) -> str:
        return self.name if self.window is None else f"{self.name}{self.window.slice}"

    @property
    def names(self) -> tuple[str, ...]:
        """What a statement mentions with this buffer: its name, and iterators."""
        return (self.name, *(() if self.window is None else self.window.iterators))

    def allocation(self, spelling: Spelling) -> str:
        shape = spelling.shape(self.dims)
        where = "shared" if self.memory.space == "smem" else "fragment"
        return f"{self.name} = T.alloc_{where}({shape}, {self.dtype})"

    @property
    def dtype(self) -> str:
        return dtype_text(self.element, self.is_tf32)

    def at(self, positions: Sequence[str]) -> str:
        """One element; `positions` has an entry for every dim of the tile."""
        if self.window is None:
            indices = [positions[axis] for axis in self.kept]
        else:
            indices = [index.at(positions) for index in self.window.indices]
        return f"{self.name}[{', '.join(indices or ['0'])}]"

    def value(self, positions: Sequence[str]) -> str:
        """What one element means: a condition where the tile is a mask."""
        text = self.at(positions)
        return f"({text} != 0)" if self.element == i1 else text

    def assignment(self, positions: Sequence[str], value: str) -> str:
        """The statement by which one element gets a value."""
        if self.element == i1:
            value = f'T.cast({number_text(value)}, "{stored_name(i1)}")'
        return f"{self.at(positions)} = {value}"

    def part(self, tmap: TMap, spelling: Spelling, facts: Facts) -> Buffer:
        """
        The part of this tile that a view of it shows. `facts` know the ranges of the
        iterators: an element beyond the end of the tile is not read, since there need
        not be any memory.
        """
        if self.window is None:
            axes, dims = self.kept, self.dims
        else:
            axes, dims = self.window.axes, self.window.dims
            tmap = self.window.tmap.then(tmap)
        kept = spelling.kept(tmap.tile)
        names = {name for dim in tmap.offsets for name in spelling.local_names(dim)}
        indices = [
            Index(
                axis if axis in kept else None,
                spelling.dim(offset := tmap.offsets[axis]),
                None
                if facts.at_most(offset + tmap.tile[axis], dims[axis])
                else spelling.dim(dims[axis] - 1),
            )
            for axis in axes
        ]
        window = Window(
            tmap,
            dims,
            axes,
            f"[{', '.join(_ranges(tmap, axes, spelling))}]" if axes else "",
            tuple(indices),
            tuple(sorted(names)),
        )
        return Buffer(self.name, tmap.tile, kept, self.element, self.memory, window)

    def reshaped(self, dims: tuple[Dim, ...], spelling: Spelling) -> Buffer:
        """The same buffer for a tile with other dims of size 1."""
        kept = spelling.kept(dims)
        window = self.window
        if window is not None:
            axes: dict[int | None, int] = dict(zip(self.kept, kept, strict=True))
            indices = [replace(i, axis=axes.get(i.axis)) for i in window.indices]
            window = replace(window, indices=tuple(indices))
        return replace(self, dims=dims, kept=kept, window=window)


@dataclass(frozen=True)
class Window:
    """Which part of an allocated tile a buffer is."""

    tmap: TMap
    dims: tuple[Dim, ...]
    """Of the allocated tile."""
    axes: tuple[int, ...]
    """Those of them that the buffer has."""
    slice: str
    """`[0:64, i * 32 : (i + 1) * 32]`."""
    indices: tuple[Index, ...]
    """Where an element of the part is along each of the axes."""
    iterators: tuple[str, ...]
    """The iterators that move it."""


@dataclass(frozen=True)
class Index:
    """The position of an element of a part along one axis of the tile."""

    axis: int | None
    """The axis of the part; None where that is of size 1."""
    start: str
    last: str | None
    """The last position of the tile, where the part may go beyond that."""

    def at(self, positions: Sequence[str]) -> str:
        text = self.start
        if self.axis is not None:
            text = _sum_text(self.start, positions[self.axis])
        return text if self.last is None else f"T.min({text}, {self.last})"


@dataclass(frozen=True)
class GlobalTile:
    """A tile of a tensor in GMEM that no level has loaded yet."""

    tensor: str
    dims: tuple[Dim, ...]
    """Of the whole tensor."""
    axes: tuple[int, ...]
    """Those that the kernel sees."""
    tmap: TMap
    element: Attribute

    def slice(self, spelling: Spelling) -> str:
        """`k[i_H, 0:D, i_L * BL : (i_L + 1) * BL]`."""
        ranges = _ranges(self.tmap, self.axes, spelling)
        return f"{self.tensor}[{', '.join(ranges or ['0:1'])}]"

    def has_whole_words(self, spelling: Spelling) -> bool:
        """Whether all of its rows begin at words of 4 bytes."""
        facts = spelling.facts
        kept = [a for a, dim in enumerate(self.dims) if facts.resolve(dim) != 1]
        unit = max(1, WORD_BYTES // element_bytes(self.element))
        return not kept or all(
            facts.divides(unit, along[kept[-1]])
            for along in (self.dims, self.tmap.offsets)
        )

    def moves_in_bulk(self, spelling: Spelling) -> bool:
        """Whether TMA can move it."""
        return moves_in_bulk(self.dims, self.tmap, self.element, spelling.facts)


def number_text(condition: str) -> str:
    """
    0 or 1, as 32 bits: by a cast to fewer, TileLang 0.1.15 would make vectors of 8 or
    16 conditions, and has none of more than 4.
    """
    return f'T.cast({condition}, "int32")'


def _sum_text(start: str, position: str) -> str:
    if "0" in (start, position):
        return position if start == "0" else start
    return f"{start} + {position}"


def _ranges(tmap: TMap, axes: Sequence[int], spelling: Spelling) -> list[str]:
    return [range_text(tmap.offsets[a], tmap.tile[a], spelling) for a in axes]


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
    if isinstance(offset, SymbolicDim) and len(terms_of(offset)) == 1:
        count = floordiv(offset, size)
        if count * size == offset and len(terms_of(count)) == 1:
            return f"({spelling.dim(count)} + 1) * {grouped(spelling.dim(size))}"
    return spelling.dim(offset + size)
