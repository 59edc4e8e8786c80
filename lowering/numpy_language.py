"""
TileLang's language in NumPy, as far as generated kernels of the form `pipelined` go.

A parallel loop has one iteration, in which its variables are all of their values at
once. Loads are predicated, with zeros beyond the end of a tensor or tile, and stores
are clipped. Buffers begin as NaN, and so is an element read beyond the end of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from cleave.dialects.algebra.dtypes import element_type_named, numpy_dtype
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_regions import Array, Region, Tile
from cleave.lowering.numpy_tiles import poison

# NumPy's own overloads do not say what comes out for elements of any type.
_where: Callable[..., Array] = np.where


def dtype_named(name: str) -> np.dtype[Any]:
    """The NumPy dtype of that name; masks in memory are "int8" (`stored_name`)."""
    return (
        np.dtype(np.int8) if name == "int8" else numpy_dtype(element_type_named(name))
    )


def poisoned(shape: Sequence[int], dtype: str) -> Array:
    """An array in which nothing has been written."""
    return np.full(shape, poison(dtype_named(dtype)), dtype_named(dtype))


def nothing(*args: object, **options: object) -> None:
    """What changes where things are, and not what they are."""


################################################################################
# The language                                                                 #
################################################################################


class GridAsked(Exception):
    """Raised instead of a launch to learn the extents of the grid."""

    def __init__(self, extents: tuple[int, ...]):
        self.extents = extents


@dataclass
class _Block(AbstractContextManager[Any]):
    position: tuple[int, ...]

    def __enter__(self) -> Any:
        first, *others = self.position
        return self.position if others else first

    def __exit__(self, *error: object) -> None:
        return None


class Language:
    """Stands in for `tilelang.language`."""

    def __init__(self, sizes: Mapping[str, int]):
        self.sizes = sizes
        self.block: tuple[int, ...] | None = None
        self.GemmWarpPolicy = SimpleNamespace(FullRow=None, FullCol=None, Square=None)

    def __getattr__(self, name: str) -> NoReturn:
        raise ExecutionError(f"T.{name} has no meaning in NumPy")

    # Functions and launches

    def macro(self, function: Callable[..., None]) -> Callable[..., None]:
        return function

    prim_func = macro

    def dynamic(self, name: str) -> int:
        return self.sizes[name]

    def Tensor(self, shape: Sequence[int], dtype: str) -> tuple[Sequence[int], str]:
        return shape, dtype

    def Kernel(self, *extents: int, threads: int) -> _Block:
        if self.block is None:
            raise GridAsked(extents)
        return _Block(self.block)

    import_source = annotate_layout = use_swizzle = staticmethod(nothing)
    annotate_min_blocks_per_sm = address_of = staticmethod(nothing)
    annotate_producer_reg_dealloc = annotate_consumer_reg_alloc = staticmethod(nothing)

    tfloat32 = "float32"

    # Loops

    def serial(self, *bounds: int) -> range:
        return range(*bounds)

    def Pipelined(
        self,
        *bounds: int,
        num_stages: int,
        annotations: Mapping[str, bool] | None = None,
    ) -> range:
        return range(*bounds)

    def Parallel(self, *extents: int) -> Iterator[Any]:
        """One iteration, in which the variables are all of their values at once."""
        positions = np.ix_(*map(np.arange, extents))
        first, *others = positions
        yield positions if others else first

    # Tiles

    def alloc_shared(self, shape: Sequence[int], dtype: str) -> Tile:
        return Tile(poisoned(shape, dtype), "smem")

    def alloc_fragment(self, shape: Sequence[int], dtype: str) -> Tile:
        return Tile(poisoned(shape, dtype), "rmem")

    def fill(self, tile: Tile, value: float) -> None:
        tile.base[...] = value

    def copy(
        self, source: Tile | Region, target: Tile | Region, disable_tma: bool = False
    ) -> None:
        if {source.space, target.space} == {"gmem", "smem"} and not disable_tma:
            for region in in_gmem(source, target):
                if region.has_bulk_rows:
                    region.require_bulk()
        target.write(source.read())

    def gemm(
        self,
        a: Tile | Region,
        b: Tile | Region,
        c: Tile,
        transpose_A: bool = False,
        transpose_B: bool = False,
        clear_accum: bool = False,
        policy: None = None,
    ) -> None:
        left, right = (tile.read().astype(np.float32) for tile in (a, b))
        left, right = left.T if transpose_A else left, right.T if transpose_B else right
        c.base[...] = left @ right + (0 if clear_accum else c.base)

    def reduce_sum(
        self, source: Tile | Region, target: Tile, dim: int, clear: bool = True
    ) -> None:
        total = source.read().sum(axis=dim).reshape(target.base.shape)
        target.base[...] = total if clear else target.base + total

    def reduce_max(
        self, source: Tile | Region, target: Tile, dim: int, clear: bool = True
    ) -> None:
        largest = source.read().max(axis=dim).reshape(target.base.shape)
        target.base[...] = largest if clear else np.maximum(target.base, largest)

    # Scalars

    def ceildiv(self, a: int, b: int) -> int:
        return -(-a // b)

    def infinity(self, dtype: str) -> Any:
        return dtype_named(dtype).type(np.inf)

    def cast(self, value: Any, dtype: str) -> Any:
        return np.asarray(value).astype(dtype_named(dtype))

    def if_then_else(self, condition: Any, a: Any, b: Any) -> Array:
        return _where(condition, a, b)

    Select = if_then_else

    def call_extern(self, dtype: str, name: str, *args: Any) -> Any:
        return _EXTERNAL[name](*args)

    def rsqrt(self, value: Any) -> Any:
        return np.reciprocal(np.sqrt(value))

    def erf(self, value: Any) -> Any:
        from math import erf

        return np.vectorize(erf, [np.float32])(value)

    max, min, abs = (
        staticmethod(np.maximum),
        staticmethod(np.minimum),
        staticmethod(np.abs),
    )
    exp2, log, log2 = staticmethod(np.exp2), staticmethod(np.log), staticmethod(np.log2)
    sqrt, tanh = staticmethod(np.sqrt), staticmethod(np.tanh)
    And, Or = staticmethod(np.logical_and), staticmethod(np.logical_or)


def in_gmem(*sides: Tile | Region) -> list[Region]:
    """Those sides of a copy that are slices of tensors."""
    return [s for s in sides if isinstance(s, Region) and s.space == "gmem"]


_EXTERNAL: Mapping[str, Callable[..., Any]] = {
    "cleave_exp2": np.exp2,
    "__fmul_rn": np.multiply,
    "cleave_reads_done": nothing,
}
"""What the module, or CUDA, defines in CUDA."""
