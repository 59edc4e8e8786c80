"""Splits of leaves, the normal form of splits anywhere: a split commutes with all."""

from __future__ import annotations

from collections.abc import Iterator

from cleave.dialects.algebra.views import Reshape, Split
from cleave.passes.superoptimize.graph import Dims, Leaf, Step


def split_forms(leaf: Leaf, dims: Dims, rank: int) -> Iterator[Leaf]:
    """
    The leaf with one of its dims split, for every dim that may be.

    The parts come first, in front of as many dims as the largest value has, so that
    they meet the parts of other leaves when operands are broadcast.
    """
    missing = rank - len(leaf.shape)
    for axis, dim in enumerate(leaf.shape):
        for split in dims.splits:
            if dim == split.dim:
                padded = leaf
                if missing > 0:
                    shape = (1,) * missing + leaf.shape
                    padded = leaf.seen_through(Step.of(Reshape, {"shape": shape}))
                params = {"dim": axis + max(missing, 0), "count": split.count}
                yield padded.seen_through(Step.of(Split, params))
