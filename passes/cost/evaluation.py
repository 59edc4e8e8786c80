"""Closed forms as arrays over tile configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cleave.dialects.dims import Dim, compile_dims, names_of
from cleave.passes.cost.closed_forms import KernelForms

Array: TypeAlias = NDArray[np.float64]


class Tile(Protocol):
    """A tile on chip or one that is moved there."""

    @property
    def tile(self) -> tuple[Dim, ...]: ...

    @property
    def element_bytes(self) -> int: ...


class Evaluation:
    """
    The values of a kernel's closed forms in every configuration, `(n, 1)` arrays.

    `sizes` gives each tile size (and split count) that the forms depend on, one entry a
    configuration. The second axis is for the launches of a kernel form.
    """

    def __init__(self, forms: KernelForms, sizes: Mapping[str, NDArray[np.int64]]):
        self.forms = forms
        self.names = sorted(sizes)
        self.count = max((len(column) for column in sizes.values()), default=1)
        self._columns = [sizes[name][:, None] for name in self.names]
        self._values: dict[Dim, Array] = {}
        self._evaluate([dim for dim in forms.dims if names_of(dim)])

    def __call__(self, dim: Dim) -> Array:
        """A dim in every configuration; exact, since sizes stay far below 2^53."""
        if isinstance(dim, int):
            return np.full((1, 1), float(dim))
        if dim not in self._values:
            self._evaluate([dim])
        return self._values[dim]

    def bytes(self, tile: Tile) -> Array:
        """The size of one tile."""
        return self.product(tile.tile) * tile.element_bytes

    def product(self, dims: Sequence[Dim]) -> Array:
        result = np.ones((1, 1))
        for dim in dims:
            result = result * self(dim)
        return result

    def _evaluate(self, dims: Sequence[Dim]) -> None:
        arrays = compile_dims(dims, self.names)(*self._columns) if dims else ()
        for dim, array in zip(dims, arrays, strict=True):
            value = array.astype(np.float64)
            self._values[dim] = value if value.ndim else value.reshape(1, 1)

    def where(self, rows: NDArray[np.bool_]) -> Evaluation:
        """The same in some of the configurations."""
        result = copy(self)
        result.__dict__.pop("threadblocks", None)
        result.count = int(rows.sum())
        result._columns = [column[rows] for column in self._columns]
        result._values = {
            dim: value[rows] if len(value) == self.count else value
            for dim, value in self._values.items()
        }
        return result

    @cached_property
    def threadblocks(self) -> Array:
        return self.product([extent for _, extent in self.forms.extents])


def ceil_div(a: Array, b: Array | float) -> Array:
    return np.ceil(a / b)
