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
class SmemUse:
    """Bytes of SMEM by purpose."""

    step: Dim
    """The tiles of one step; each stage has its own."""
    beside: Dim
    """Tiles that the epilogue reads or exchanges, and barriers."""
    staging: Dim
    """Parts of outputs on their way to GMEM, where they are as narrow as possible."""

    def total(self, stages: int) -> Dim:
        return self.step * stages + self.beside + self.staging


def smem_use(structure: Structure, facts: Facts) -> SmemUse:
    step: Dim = 0
    for argument in structure.loop.view_arguments:
        step += tile_bytes(argument, facts)
    staged = structure.staged
    beside: Dim = BARRIER_BYTES
    for value in (*structure.beside, *(op.results[0] for op in structure.epilogue)):
        memory = memory_of(value)
        if memory is not None and memory.space == "smem" and value.owner not in staged:
            beside += _aligned(tile_bytes(value, facts))
    # Outputs of one type take turns in one buffer.
    types = {copy.result_type: copy for copy in staged}
    staging: Dim = 0
    for copy in types.values():
        rows, columns = (facts.resolve(dim) for dim in copy.result_type.dims[-2:])
        size = element_bytes(copy.result_type.element_type)
        width = narrowest_part(columns, size, structure.divides_rows)
        staging += _aligned(rows * width * size)
    return SmemUse(step, beside, staging)


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


def tile_registers(structure: Structure, threads: int, facts: Facts) -> Dim:
    """Registers of a consumer that hold accumulators and a statistic's tile."""
    elements: Dim = 0
    for value in structure.accumulators:
        elements += _elements(value, facts)
    tiles = [_elements(op.results[0], facts) for op in structure.statistics]
    return ceildiv(elements + (maximum(*tiles) if tiles else 0), threads)


def tile_bytes(value: SSAValue, facts: Facts) -> Dim:
    return _elements(value, facts) * element_bytes(tensor_type(value).element_type)


def _elements(value: SSAValue, facts: Facts) -> Dim:
    elements: Dim = 1
    for dim in tensor_type(value).dims:
        elements *= facts.resolve(dim)
    return elements


def _aligned(size: Dim) -> Dim:
    return ceildiv(size, BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
