"""
The grid of a kernel, in whose order its threadblocks start.

The last iterator is the fastest, as in row-major order. Where threadblocks run longer
the higher an iterator is (`descending`), the longest start first, for all values of the
other iterators, so that only short ones are left when multiprocessors run out of work
(Graham 1969). What they all read has to stay in L2: where it is too much, the others go
through their values in groups, as in FlashAttention-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.tmap import names_in
from cleave.dialects.tensor import TensorType
from cleave.lowering.tilelang.buffers import Spelling
from cleave.lowering.tilelang.kernel import factor
from cleave.lowering.tilelang.text import Names, grouped
from cleave.passes.cost.traffic import KEPT_SHARE

MAX_DIMS = 3


@dataclass
class Grid:
    """Names and extents of the dims of a grid, the slowest first."""

    names: list[str] = field(default_factory=list[str])
    extents: list[str] = field(default_factory=list[str])
    decode: list[str] = field(default_factory=list[str])
    """Statements that compute the kernel's iterators from them."""

    def add(self, name: str, extent: str) -> None:
        self.names.append(name)
        self.extents.append(extent)

    @property
    def variables(self) -> str:
        """What a launch defines, the fastest first."""
        text = ", ".join(reversed(self.names))
        return f"({text})" if len(self.names) > 1 else text

    def fold(self, names: Names) -> None:
        """Make one dim of the slowest two until there are no more than a grid has."""
        while len(self.names) > MAX_DIMS:
            block = names.fresh("block")
            rows, columns = map(factor, self.extents[:2])
            self.decode[:0] = [
                f"{self.names[0]} = {block} // {columns}",
                f"{self.names[1]} = {block} % {columns}",
            ]
            self.names[:2] = [block]
            self.extents[:2] = [f"{rows} * {columns}"]


def grid_of(kernel: KernelOp, spelling: Spelling, names: Names, l2_bytes: int) -> Grid:
    """The grid of a kernel on a device with so much L2; new names are from `names`."""
    falling = descending(kernel)
    others = {
        spelling.names[range_.iterator]: range_.hi
        for range_ in kernel.ranges
        if range_.iterator not in falling
    }
    counts = [spelling.facts.resolve(extent) for extent in others.values()]
    sizes = [count for count in counts if isinstance(count, int)]
    group = 1
    if falling and len(sizes) == len(counts):
        group = _group(prod(sizes), _shared_bytes(kernel, spelling.facts), l2_bytes)

    grid = Grid()
    if not kernel.ranges:
        grid.add(names.fresh("block"), "1")
    slow = fast = {name: spelling.dim(extent) for name, extent in others.items()}
    if 1 < group < prod(sizes):
        part, place = names.fresh("group"), names.fresh("place")
        number = f"{part} * {group} + {place}"
        grid.decode = _position_lines([*others], sizes, number)
        slow, fast = {part: str(prod(sizes) // group)}, {place: str(group)}
    elif group == 1:
        fast = {}
    else:
        slow = {}
    for name, extent in slow.items():
        grid.add(name, extent)
    for range_ in kernel.ranges:
        if range_.iterator in falling:
            block, extent = names.fresh("block"), spelling.dim(range_.hi)
            grid.add(block, extent)
            last = f"{grouped(extent)} - 1"
            grid.decode.append(f"{spelling.names[range_.iterator]} = {last} - {block}")
    for name, extent in fast.items():
        grid.add(name, extent)
    grid.fold(names)
    return grid


def descending(kernel: KernelOp) -> list[str]:
    """The iterators that begin with their last value."""
    attribute = kernel.attributes.get("descending")
    if not isinstance(attribute, ArrayAttr):
        return []
    return [name.data for name in cast(ArrayAttr[StringAttr], attribute)]


def _shared_bytes(kernel: KernelOp, facts: Facts) -> int | None:
    """
    Bytes of the tensors in which all values of a descending iterator read the same;
    None where a size is not known.
    """
    falling = {*descending(kernel)}
    total = 0
    views = [v for v in kernel.views if not names_in(v.tmap.offsets) & falling]
    for source in {view.source for view in views}:
        type_ = cast(TensorType, source.type)
        size = facts.resolve(prod(type_.dims, start=element_bytes(type_.element_type)))
        if not isinstance(size, int):
            return None
        total += size
    return total


def _group(total: int, shared: int | None, l2_bytes: int) -> int:
    """
    The most of `total` values, in groups of one size, that L2 keeps what they read for.
    """
    if shared is None:
        return 1
    kept = KEPT_SHARE * l2_bytes * total
    sizes = (size for size in range(total, 1, -1) if total % size == 0)
    return next((size for size in sizes if size * shared <= kept), 1)


def _position_lines(
    names: Sequence[str], counts: Sequence[int], number: str
) -> list[str]:
    """Statements that decode a position from its number in row-major order."""
    lines: list[str] = []
    for axis, (name, count) in enumerate(zip(names, counts, strict=True)):
        inside = prod(counts[axis + 1 :])
        text = number if inside == 1 else f"({number}) // {inside}"
        if axis:
            text = f"{grouped(text)} % {count}"
        lines.append(f"{name} = {text}")
    return lines
