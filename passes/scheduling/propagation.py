"""
From a tile of an operator's result to the tiles of its operands (paper section 5.3).

The operator's tensor expression maps result and reduction axes to operand dims; a tile
is one range an axis, and the range of an operand dim follows from those of its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cleave.dialects.algebra.tensor_expression import Index, TensorExpression
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.tmap import TMap


@dataclass(frozen=True)
class AxisRange:
    """The positions that a tile covers along one axis."""

    offset: Dim
    size: Dim


class NoTileError(Exception):
    """A tile of the result does not come from one tile of an operand."""


def operand_tmaps(
    expression: TensorExpression, result: TMap, reduced: Sequence[AxisRange]
) -> list[TMap]:
    """
    The tile of each operand that the tile `result` of the result needs.

    Args:
        reduced: the range of every reduction axis (all of it, or one step of a loop).
    Raises:
        NoTileError: the elements needed are not a contiguous tile.
    """
    axes = [
        AxisRange(offset, size)
        for offset, size in zip(result.offsets, result.tile, strict=True)
    ]
    axes += reduced
    tmaps: list[TMap] = []
    for indices in expression.operands:
        ranges = [_index_range(index, axes) for index in indices]
        tmaps.append(
            TMap(tuple(r.offset for r in ranges), tuple(r.size for r in ranges))
        )
    return tmaps


def full_ranges(expression: TensorExpression) -> list[AxisRange]:
    """All of every reduction axis."""
    return [AxisRange(0, extent) for extent in expression.reduced]


def _index_range(index: Index, axes: Sequence[AxisRange]) -> AxisRange:
    if not index:
        return AxisRange(0, 1)
    offset: Dim = 0
    size: Dim = 1
    for position, term in enumerate(index):
        axis = axes[term.axis]
        offset = offset + axis.offset * term.stride
        if axis.size == 1:
            continue
        if position != len(index) - 1 or term.stride != 1:
            raise NoTileError(
                f"{axis.size} parts at a stride of {term.stride} are no tile; "
                "only a tile of 1 over the parts of a split is"
            )
        size = axis.size
    return AxisRange(offset, size)
