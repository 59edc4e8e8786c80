"""
Tensor expressions: which elements of its operands an operator reads, as index maps.

A matmul is `out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]`; its expression
gives for every operand dim an index over the result's axes (0, 1, ...) followed by the
reduction axes. From it follows everything that scheduling asks: which tile of each
operand a tile of the result needs (paper section 5.3, after Welder), which dims are
reduced, and which dims of the operands and the result have one extent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Term:
    """One axis times a constant stride."""

    axis: int
    stride: Any = 1
    """A Dim; the chunk of a split, otherwise 1."""


Index: TypeAlias = tuple[Term, ...]
"""A sum of terms; the empty sum is position 0 (a broadcast or a size-1 dim)."""


@dataclass(frozen=True)
class TensorExpression:
    """Index maps of an operator; axes from `rank` on are the reduction axes."""

    rank: int
    operands: tuple[tuple[Index, ...], ...]
    reduced: tuple[Any, ...] = ()
    """Extents (Dim) of the reduction axes."""


def broadcast_indices(
    shape: Sequence[Any], result: Sequence[Any], first: int = 0
) -> tuple[Index, ...]:
    """
    Indices of an operand whose dims are right-aligned with `result`'s and of size 1
    where they are broadcast; `first` is the axis number of the first result dim.
    """
    skipped = len(result) - len(shape)
    return tuple(
        () if dim == 1 else (Term(first + skipped + position),)
        for position, dim in enumerate(shape)
    )
