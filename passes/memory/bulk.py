"""What bulk copies (TMA) can move between GMEM and SMEM."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.dims import Dim
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.tmap import TMap

BULK_BYTES = 16
"""What strides of tensors, and rows of tiles, have to be multiples of, and where rows
have to begin: a GPU stops at any other coordinate with "illegal instruction" (TileLang
issue 2527)."""


def moves_in_bulk(
    dims: Sequence[Dim], tmap: TMap, element: Attribute, facts: Facts
) -> bool:
    """
    Whether TMA can move a tile of a tensor with these dims: strides, rows and where
    these begin are known to be multiples of 16 bytes. TileLang takes strides that are
    no numbers for such, and any beginning.
    """
    sizes = zip(dims, tmap.tile, strict=True)
    kept = [
        axis
        for axis, extents in enumerate(sizes)
        if any(facts.resolve(extent) != 1 for extent in extents)
    ]
    if not kept:
        return True
    unit = BULK_BYTES // element_bytes(element)
    rows = [tmap.tile[kept[-1]], tmap.offsets[kept[-1]]]
    if len(kept) > 1:
        rows.append(dims[kept[-1]])
    return all(facts.divides(unit, row) for row in rows)
