"""What a threadblock of the form `persistent` takes, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.dims import Dim, ceildiv, maximum, minimum, mod
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.level import memory_of
from cleave.dialects.itgraph.parts import tensor_type
from cleave.lowering.tilelang.forms.persistent.structure import Structure

BUFFER_ALIGNMENT = 1024
"""Bytes; TileLang lets every tile that a bulk copy touches begin at a multiple."""
BARRIER_BYTES = 1024
"""Of static SMEM: a few barriers, filled up to the alignment of what follows."""
SWIZZLE_BYTES = 128
"""Of a row of the widest swizzle."""


@dataclass(frozen=True)
class Resources:
    """What a threadblock takes, over the tile sizes that have no value yet."""

    stage_bytes: Dim
    """SMEM of each stage: the tiles of one step of the loop."""
    beside_bytes: Dim
    """SMEM of tiles that the epilogue reads or exchanges, and of barriers."""
    staging_bytes: Dim
    """SMEM of outputs on their way to GMEM, a part as narrow as possible of each."""
    tile_words: Dim
    """Registers of all consumers together: accumulators, and a statistic's tile."""

    def smem_bytes(self, stages: int) -> Dim:
        return self.stage_bytes * stages + self.beside_bytes + self.staging_bytes

    def registers(self, threads: int) -> Dim:
        """Registers of each of `threads` consumers that hold tiles."""
        return ceildiv(self.tile_words, threads)


def resources_of(structure: Structure, facts: Facts) -> Resources:
    step: Dim = 0
    for argument in structure.loop.view_arguments:
        step += _tile_bytes(argument, facts)
    beside: Dim = BARRIER_BYTES
    made = (op.results[0] for op in structure.epilogue if not op.KEEPS_ORDER)
    for value in (*structure.beside, *made):
        memory = memory_of(value)
        is_staged = value.owner in structure.staged
        if memory is not None and memory.space == "smem" and not is_staged:
            beside += _aligned(_tile_bytes(value, facts))
    staging: Dim = 0
    # Outputs of one type take turns in one buffer.
    for type_ in {copy.result_type for copy in structure.staged}:
        rows, columns = (facts.resolve(dim) for dim in type_.dims[-2:])
        size = element_bytes(type_.element_type)
        width = narrowest_part(columns, size, structure.divides_rows)
        staging += _aligned(rows * width * size)
    words: Dim = 0
    for value in structure.accumulators:
        words += _elements(value, facts)
    statistics = [_elements(op.results[0], facts) for op in structure.statistics]
    if statistics:
        words += maximum(*statistics)
    return Resources(step, beside, staging, words)


def narrowest_part(columns: Dim, element_size: int, divides_rows: bool) -> Dim:
    """
    The fewest columns of an output that can be staged at a time: a row of the swizzle,
    or all where that does not divide them, or where each warpgroup has other columns.
    """
    if not divides_rows:
        return columns
    row = SWIZZLE_BYTES // element_size
    return minimum(columns, mod(columns, row) * columns + row)


def staging_columns(
    columns: int, rows: int, element_size: int, divides_rows: bool, available: int
) -> int:
    """The most columns that fit into so many bytes, so that they divide all."""
    narrowest = cast(int, narrowest_part(columns, element_size, divides_rows))
    widths = [
        width
        for width in range(narrowest, columns + 1, narrowest)
        if columns % width == 0 and rows * width * element_size <= available
    ]
    return max(widths, default=narrowest)


def _tile_bytes(value: SSAValue, facts: Facts) -> Dim:
    return _elements(value, facts) * element_bytes(tensor_type(value).element_type)


def _elements(value: SSAValue, facts: Facts) -> Dim:
    elements: Dim = 1
    for dim in tensor_type(value).dims:
        elements *= facts.resolve(dim)
    return elements


def _aligned(size: Dim) -> Dim:
    return ceildiv(size, BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
