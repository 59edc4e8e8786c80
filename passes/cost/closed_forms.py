"""
Closed forms of a planned kernel, in dims over its tile sizes.

Sizes that have a value are already numbers in them, so the names that are left are tile
sizes (and split counts) that a configuration chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, cast

from cleave.dialects.dims import Dim, SymbolicDim, names_of
from cleave.passes.cost.origin import Origin


@dataclass(frozen=True)
class Transfer:
    """Tiles that a level moves between a tensor in GMEM and the chip."""

    tensor: int
    """Which tensor: its position in `KernelForms.tensor_bytes`."""
    tile: tuple[Dim, ...]
    element_bytes: int
    moves: Dim
    """How many tiles a threadblock moves."""
    elements: Dim
    """Elements moved by all threadblocks, without what lies beyond the tensor."""
    held: Dim
    """Distinct elements that one threadblock moves."""
    iterators: tuple[str, ...]
    """The kernel's iterators that decide which part of the tensor it is."""
    row_elements: Dim
    """Elements between neighbouring rows of the tensor; 0 where it is one row."""
    begins: tuple[Dim, ...]
    """Where its rows begin along the innermost dim that is more than one long: those of
    the first tile, and how much later after one step of each iterator around it."""
    run: Dim
    """Elements of a row that a threadblock moves in all of its iterations."""
    in_boxes: bool
    """It goes to swizzled SMEM, so that its rows are cut into boxes."""

    @property
    def span(self) -> Dim:
        """Elements of a tile along the innermost dim that is more than one long."""
        return next((dim for dim in reversed(self.tile) if dim != 1), 1)


@dataclass(frozen=True)
class MatrixProduct:
    """One matmul of tiles: `rows` x `depth` by `depth` x `columns`."""

    rows: Dim
    columns: Dim
    depth: Dim
    element_bytes: int
    lhs_in_registers: bool
    """The left operand was computed and stayed where its threads left it."""
    takes_wgmma: bool
    """As far as its operands decide that (`cleave.passes.memory.tf32`)."""
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True)
class TileReduction:
    """One sum or maximum over a dim of a tile in registers."""

    elements: Dim
    row: Dim
    """Elements that are reduced to one."""
    inner: Dim
    """Elements from one of them to the next."""
    in_fragment: bool
    """The tile lies as a matmul left it, a row in four threads of a warp."""
    is_summed_by_columns: bool
    """Rows may be added up once, behind the loop (`passes.cost.columns`)."""
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True)
class LevelForms:
    """What one iteration of a level does, and its loops."""

    trips: Dim
    """Iterations, for each of the level around it; 1 for the kernel."""
    varies: bool
    """A threadblock may have more iterations than another."""
    is_pipelined: bool
    """Loads run ahead of what uses them."""
    loads: tuple[Transfer, ...]
    products: tuple[MatrixProduct, ...]
    reductions: tuple[TileReduction, ...]
    special: tuple[tuple[Dim, int], ...]
    """Elements, and special functions evaluated for each."""
    issued: tuple[tuple[Dim, int], ...]
    """Elements, and instructions issued for each."""
    apart: tuple[tuple[Dim, int], ...]
    """The same of instructions that nothing else overlaps."""
    shared_bytes: tuple[Dim, ...]
    """Bytes that threads themselves read from or write to SMEM."""
    meetings: int
    """Points at which all threads wait for each other."""
    loops: tuple[LevelForms, ...]

    def walk(self) -> Iterator[LevelForms]:
        """This level and all loops in it."""
        yield self
        for loop in self.loops:
            yield from loop.walk()


@dataclass(frozen=True)
class SharedBuffer:
    """A tile in SMEM and when it is needed, in positions of the kernel's body."""

    tile: tuple[Dim, ...]
    element_bytes: int
    is_staged: bool
    """There is one for every stage of the pipeline."""
    is_stored: bool
    """It is a copy that exists only for a store."""
    in_boxes: bool
    """It is swizzled, so that TMA moves its rows in boxes."""
    first: int
    last: int
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True)
class RegisterTile:
    """A tile in registers, divided over the threads of a block."""

    elements: Dim
    element_bytes: int
    spread: Literal["all", "rows"]
    """Over all threads, or a row over the four threads that hold its elements."""
    origin: Origin = field(compare=False, repr=False)


RegisterPoint = tuple[tuple[RegisterTile, int], ...]
"""What is live at one point of a kernel, and how many of it."""


@dataclass(frozen=True)
class KernelForms:
    """The closed forms of a kernel whose memory is planned."""

    extents: tuple[tuple[str, Dim], ...]
    """The kernel's iterators, slowest first, and how many threadblocks each counts."""
    level: LevelForms
    stores: tuple[Transfer, ...]
    tensor_bytes: tuple[Dim, ...]
    """Sizes of the tensors in GMEM that it touches."""
    buffers: tuple[SharedBuffer, ...]
    points: tuple[RegisterPoint, ...]
    prelude: tuple[RegisterTile, ...]
    """Those of what goes to SMEM before the first loop."""
    warps: Literal["rows", "columns"]
    rows_meet_tiles: bool
    """What loops reduce is combined with tiles of the rows (`passes.cost.rows`)."""
    rescales: bool
    """A loop multiplies what it has summed up before it adds to it."""

    @property
    def threadblocks(self) -> Dim:
        return product([extent for _, extent in self.extents])

    @property
    def loops(self) -> tuple[LevelForms, ...]:
        """Every loop, outer ones first."""
        return tuple(level for level in self.level.walk() if level is not self.level)

    @property
    def products(self) -> tuple[MatrixProduct, ...]:
        return tuple(p for level in self.level.walk() for p in level.products)

    @property
    def loads(self) -> tuple[Transfer, ...]:
        return tuple(load for level in self.level.walk() for load in level.loads)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Every dim in these forms, once."""
        return tuple(dict.fromkeys(_dims_in(self)))

    @property
    def names(self) -> tuple[str, ...]:
        """The tile sizes and split counts that the forms depend on."""
        return tuple(sorted({name for dim in self.dims for name in names_of(dim)}))


def product(dims: tuple[Dim, ...] | list[Dim]) -> Dim:
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def _dims_in(value: Any) -> Iterator[Dim]:
    if isinstance(value, int | SymbolicDim):
        yield value
    elif isinstance(value, tuple):
        for element in cast(tuple[Any, ...], value):
            yield from _dims_in(element)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _dims_in(getattr(value, field.name))
