"""Tensors, tiles and slices of them, as `cleave.lowering.numpy_language` has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from cleave.lowering.numpy_algebra import ExecutionError
from cleave.passes.memory.bulk import BULK_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Position: TypeAlias = "int | slice[int, int, None] | Array"
"""One dim of an index: a position, a range, or the positions of a parallel loop."""
Space: TypeAlias = Literal["gmem", "smem", "rmem"]
"""Where a tensor or tile is."""


@dataclass(frozen=True, eq=False)
class Region:
    """A slice of a tensor or tile; it may end beyond it."""

    base: Array
    index: tuple[Position, ...]
    space: Space

    @property
    def has_bulk_rows(self) -> bool:
        """Whether strides and rows are such that TileLang takes bulk copies (TMA)."""
        last = self.index[-1]
        sizes = [last.stop - last.start if isinstance(last, slice) else 1]
        if self.base.ndim > 1:
            sizes.append(self.base.shape[-1])
        return all(size * self.base.itemsize % BULK_BYTES == 0 for size in sizes)

    def require_bulk(self) -> None:
        """Raise ExecutionError where a GPU has no bulk copy between here and SMEM."""
        last = self.index[-1]
        begin = last.start if isinstance(last, slice) else last
        if not self.has_bulk_rows or begin * self.base.itemsize % BULK_BYTES != 0:
            raise ExecutionError(
                f"rows of a bulk copy, which begin at element {begin}, do not begin "
                f"and end at multiples of {BULK_BYTES} bytes"
            )

    def _parts(self) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]:
        """What there is of it in the base, where that is in the region, its shape."""
        inside: list[Position] = []
        within: list[Position] = []
        shape: list[int] = []
        for position, extent in zip(self.index, self.base.shape, strict=True):
            if not isinstance(position, slice):
                inside.append(position)
                continue
            start, stop = min(position.start, extent), min(position.stop, extent)
            inside.append(slice(start, stop))
            within.append(slice(0, stop - start))
            shape.append(position.stop - position.start)
        return tuple(inside), tuple(within), tuple(shape)

    def read(self) -> Array:
        inside, within, shape = self._parts()
        array = np.zeros(shape, self.base.dtype)
        array[within] = self.base[inside]
        return array

    def write(self, array: Array) -> None:
        inside, within, shape = self._parts()
        self.base[inside] = array.reshape(shape)[within]


@dataclass(frozen=True, eq=False)
class Tile:
    """A buffer on chip, read and written element by element or as a whole."""

    base: Array
    space: Space

    def __getitem__(self, index: Any) -> Any:
        positions = _positions(index)
        if any(isinstance(p, slice) for p in positions):
            return Region(self.base, self._bounded(positions), self.space)
        axes: list[tuple[Any, int]] = [*zip(positions, self.base.shape, strict=True)]
        found = self.base[tuple(np.clip(p, 0, extent - 1) for p, extent in axes)]
        inside = [(p >= 0) & (p < extent) for p, extent in axes]
        return np.where(
            np.logical_and.reduce(np.broadcast_arrays(*inside)), found, np.nan
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        self.base[index] = value

    def _bounded(self, positions: Sequence[Position]) -> tuple[Position, ...]:
        """With the ends of slices such as `[stage, :, :]`."""
        return tuple(
            slice(0, extent) if isinstance(p, slice) and p == slice(None) else p
            for p, extent in zip(positions, self.base.shape, strict=True)
        )

    def read(self) -> Array:
        return self.base

    def write(self, array: Array) -> None:
        self.base[...] = array.reshape(self.base.shape)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor in GMEM, of which there are only slices."""

    base: Array

    def __getitem__(self, index: Any) -> Region:
        return Region(self.base, _positions(index), "gmem")


def _positions(index: Any) -> tuple[Position, ...]:
    return cast("tuple[Position, ...]", index) if isinstance(index, tuple) else (index,)
