"""
Tile configurations of a structure (paper, Algorithm 2).

The least reduction tile follows from the hardware: the depth of a tensor-core
instruction, and a memory line where the reduced dim is contiguous. Output tiles grow
from a base tile of one instruction (after Roller), reduction tiles likewise, and every
loop over one symbol has one tile. Tiles need not divide their dims; a dim smaller than
the base tile is padded by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from cleave.dialects.dims import Dim, names_of
from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import KernelForms, Transfer
from cleave.passes.cost.work import WGMMA_DEPTH_BYTES, WGMMA_ROWS

ROWS = (1, 2, 3, 4)
"""By how much the rows of a matmul's tile grow, in instructions of 64."""
COLUMNS = (1, 2, 4, 6, 8, 10, 11, 12, 14, 16)
"""The same of columns, in steps of 16; one instruction has up to 256."""
DEPTHS = (1, 2, 4)
"""Of the depth, in least reduction tiles."""
LEAST_COLUMNS = 16
MOST_ELEMENTS = 65536
"""Of a tile that no tensor core computes: the registers of a multiprocessor."""

Configurations = Mapping[str, NDArray[np.int64]]
"""Tile sizes (and split counts) by symbol, an entry a configuration."""


@dataclass(frozen=True)
class TileRange:
    """What a tile symbol divides."""

    extent: int
    is_loop: bool
    """It divides a reduced dim into the steps of a loop."""
    is_partial: bool
    """It is less than the dim: with all of it in one tile, the structure is another."""


def configurations(
    forms: KernelForms, tiles: Mapping[str, TileRange], hardware: Hardware
) -> Configurations:
    """Every combination of tile sizes that is worth evaluating."""
    choices = [
        tile_sizes(name, range_, forms, hardware) for name, range_ in tiles.items()
    ]
    rows = np.array(list(product(*choices)), np.int64)
    columns = {name: rows[:, position] for position, name in enumerate(tiles)}
    return columns or {"": np.zeros(1, np.int64)}


def tile_sizes(
    tile: str, range_: TileRange, forms: KernelForms, hardware: Hardware
) -> list[int]:
    """The sizes of one tile symbol, ascending."""
    products = forms.products
    is_rows = any(_is(p.rows, tile) for p in products)
    is_columns = any(_is(p.columns, tile) for p in products)
    is_depth = any(_is(p.depth, tile) for p in products)
    if is_rows:
        sizes = [WGMMA_ROWS * factor for factor in ROWS]
        base = WGMMA_ROWS
    elif is_columns:
        sizes = [LEAST_COLUMNS * factor for factor in COLUMNS]
        base = LEAST_COLUMNS
    elif is_depth:
        base = least_reduction(tile, forms, hardware)
        sizes = [base * factor for factor in DEPTHS]
    else:
        base = _least_run(tile, forms, hardware)
        sizes = [base << power for power in range(17) if base << power <= MOST_ELEMENTS]
    covering = -(-range_.extent // base) * base
    kept = [size for size in sizes if size < covering] + [covering]
    if range_.is_loop or range_.is_partial:
        kept = [size for size in kept if size < range_.extent] or kept[:1]
    largest = max(sizes)
    return sorted({min(size, largest) for size in kept})


def least_reduction(tile: str, forms: KernelForms, hardware: Hardware) -> int:
    """
    The paper's GetMinReductionRange: one instruction deep, or a memory line where the
    reduced dim is contiguous.
    """
    width = min(p.element_bytes for p in forms.products)
    depth = WGMMA_DEPTH_BYTES // width
    if _contiguous(tile, forms.loads):
        return max(depth, hardware.memory_line_bytes // width)
    return 2 * depth


def _least_run(tile: str, forms: KernelForms, hardware: Hardware) -> int:
    """A memory line along a contiguous dim, one element along others."""
    transfers = [*forms.loads, *forms.stores]
    width = min((x.element_bytes for x in transfers), default=4)
    if _contiguous(tile, transfers):
        return hardware.memory_line_bytes // width
    return 1


def _contiguous(tile: str, transfers: Sequence[Transfer]) -> bool:
    """Whether the largest tiles that have this size have it along their rows."""
    having = [x for x in transfers if any(_is(dim, tile) for dim in x.tile)]
    most = max((_rank(transfer) for transfer in having), default=0)
    return any(_is(x.span, tile) for x in having if _rank(x) == most)


def _rank(transfer: Transfer) -> int:
    return sum(dim != 1 for dim in transfer.tile)


def _is(dim: Dim, tile: str) -> bool:
    return names_of(dim) == frozenset((tile,))


def divides_all(
    columns: Configurations, tiles: Mapping[str, TileRange]
) -> NDArray[np.bool_]:
    """Whether the tiles of all loops divide what they iterate over."""
    result = np.ones(len(next(iter(columns.values()))), bool)
    for name, range_ in tiles.items():
        if range_.is_loop:
            result &= range_.extent % columns[name] == 0
    return result
