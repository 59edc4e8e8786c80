"""
Tiles of tensors in NumPy: what a view shows, and how a tile is stored.

A load is predicated as on the device: positions past the end of a GMEM tensor read as
zero. A tile that is cut from another, past its end, has no meaning there: what is found
depends on where that other tile lives. It reads as poison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cleave.dialects.wording import counted
from cleave.lowering.numpy_algebra import ExecutionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Positions: TypeAlias = "NDArray[np.int64]"

_ZERO = -1
"""In place of a position: past the end of a GMEM tensor."""
_UNKNOWN = -2
"""In place of a position: past the end of an enclosing view, or of a computed tile."""


def poison(dtype: np.dtype[Any]) -> Any:
    """What stands where nothing was written: NaN, the smallest integer, a true mask."""
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind in "iu" else dtype.type(np.nan)


@dataclass(frozen=True, eq=False)
class Window:
    """The part of `base` that a view shows: along each dim, positions in the base."""

    base: Array
    positions: tuple[Positions, ...]
    beyond: tuple[int, ...]
    """Along each dim, what the position after the last one stands for."""
    stray: str = ""
    """Why reading is an error, if it is."""

    @classmethod
    def of_tensor(cls, base: Array) -> Window:
        """All of a tensor in GMEM."""
        return cls(base, _all_positions(base), (_ZERO,) * base.ndim)

    @classmethod
    def of_tile(cls, base: Array) -> Window:
        """All of a computed tile; there is nothing beyond it."""
        return cls(base, _all_positions(base), (_UNKNOWN,) * base.ndim)

    @classmethod
    def of(cls, held: Array | Window) -> Window:
        """A window as it is, or all of a computed tile."""
        return held if isinstance(held, Window) else cls.of_tile(held)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(positions) for positions in self.positions)

    def cut(
        self,
        offsets: Sequence[int],
        tile: Sequence[int],
        gathers: Mapping[int, Array],
        where: str,
    ) -> Window:
        """
        The tile of this window at `offsets`; `gathers` has the index vectors by dim.

        Raises:
            ExecutionError: a negative offset, or a gathered row that does not exist. An
                offset further outside than a whole tile is one only when it is read:
                a loop without iterations may never do that.
        """
        positions: list[Positions] = []
        beyond: list[int] = []
        stray = self.stray
        for dim, (offset, size, extent) in enumerate(
            zip(offsets, tile, self.shape, strict=True)
        ):
            if dim in gathers:
                rows = _checked_rows(gathers[dim], extent, f"{where}: dim {dim}")
                positions.append(self.positions[dim][rows])
                beyond.append(_UNKNOWN)
                continue
            if offset < 0:
                raise ExecutionError(
                    f"{where}: offset {offset} of dim {dim} is negative"
                )
            if offset >= extent + size:
                stray = stray or (
                    f"{where}: offset {offset} of dim {dim} lies more than a tile "
                    f"({size}) past its end ({extent})"
                )
            shown = self.positions[dim][offset : offset + size]
            missing = np.full(size - len(shown), self.beyond[dim])
            positions.append(np.concatenate([shown, missing]))
            beyond.append(self.beyond[dim] if offset + size >= extent else _UNKNOWN)
        return Window(self.base, tuple(positions), tuple(beyond), stray)

    def element(self, index: Sequence[int], where: str) -> int:
        """
        One integer of a table.

        Raises:
            ExecutionError: an index outside of the window, or nothing written there.
        """
        for dim, (position, extent) in enumerate(zip(index, self.shape, strict=True)):
            if not 0 <= position < extent or self.positions[dim][position] < 0:
                raise ExecutionError(
                    f"{where}: index {position} of dim {dim} is outside of its table "
                    f"(0 to {extent})"
                )
        cell = self.cut(index, [1] * len(index), {}, where).tile.reshape(())
        if cell == poison(cell.dtype):
            raise ExecutionError(f"{where}: reads what was never written")
        return int(cell)

    @cached_property
    def tile(self) -> Array:
        """The elements, zero or poison where there are none."""
        if self.stray:
            raise ExecutionError(self.stray)
        if self.base.dtype.kind == "b" and self.shows_unknown:
            raise ExecutionError("a mask, which cannot be poison, is read past its end")
        inside = [np.maximum(positions, 0) for positions in self.positions]
        tile = self.base[np.ix_(*inside)]
        for mark in (_ZERO, _UNKNOWN):
            for dim, positions in enumerate(self.positions):
                if (marked := positions == mark).any():
                    index = (*(slice(None),) * dim, marked)
                    tile[index] = 0 if mark == _ZERO else poison(tile.dtype)
        return tile

    @property
    def shows_unknown(self) -> bool:
        """Whether some of the elements are poison because of where they are."""
        return any((positions == _UNKNOWN).any() for positions in self.positions)


def store(
    target: Array, written: Array, tile: Array, offsets: Sequence[int], where: str
) -> None:
    """
    Store a tile at `offsets`, clipped to the target, and count the writes in `written`.

    Raises:
        ExecutionError: the tile begins outside of the target.
    """
    for dim, (offset, extent) in enumerate(zip(offsets, target.shape, strict=True)):
        if not 0 <= offset < extent:
            raise ExecutionError(
                f"{where}: offset {offset} of dim {dim} is outside of 0 to {extent}"
            )
    region = tuple(
        slice(offset, offset + size)
        for offset, size in zip(offsets, tile.shape, strict=True)
    )
    inside = tuple(slice(0, size) for size in target[region].shape)
    target[region] = tile[inside]
    written[region] += 1


def require_writes(written: Array, least: int, what: str) -> None:
    """
    Check that every element was written at most once, and at least `least` times.

    Raises:
        ExecutionError: naming the first element of which that is not true.
    """
    wrong = np.argwhere((written < least) | (written > 1))
    if len(wrong):
        index = wrong[0].tolist()
        times = written[tuple(index)]
        rule = "exactly" if least else "at most"
        raise ExecutionError(
            f"{what}: element {index} is written {times} times, but each is written "
            f"{rule} once (wrong for {counted(len(wrong), 'element')})"
        )


def _all_positions(base: Array) -> tuple[Positions, ...]:
    return tuple(np.arange(extent, dtype=np.int64) for extent in base.shape)


def _checked_rows(rows: Array, extent: int, where: str) -> Positions:
    for row in rows[(rows < 0) | (rows >= extent)]:
        if row == poison(rows.dtype):
            raise ExecutionError(f"{where} is gathered by an index never written")
        raise ExecutionError(f"{where} has no row {row} to gather (rows: {extent})")
    return rows.astype(np.int64)
