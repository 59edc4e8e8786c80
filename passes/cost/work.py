"""
Clocks that the work of one iteration keeps a multiprocessor's units busy.

All are for one threadblock; `(configurations, launches)` arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import (
    LevelForms,
    MatrixProduct,
    TileReduction,
    Transfer,
)
from cleave.passes.cost.evaluation import Array, Evaluation, ceil_div

WGMMA_ROWS = 64
WGMMA_DEPTH_BYTES = 32
"""Bytes of one row of A that an instruction takes: 16 elements of 2 bytes."""
SWIZZLE_BYTES = 128
"""Of a row of the widest swizzle."""
LINEAR_ROUNDS = 2
"""How often more threads than those of a fragment exchange what they have of a row."""
LINEAR_ROW = 256
"""Elements of a row that lie in one warp, 8 in each thread."""
NARROW_BOXES = (1.5, 2.0)
"""By how much loads take longer whose boxes are 64 and 32 bytes wide."""
MMA_SYNC_FACTOR = 2.0
"""How much longer a matmul takes where there is wgmma and it cannot be used: mma_sync
has 0.6 of its rate, and operands that threads load (assumed)."""
WARPGROUP = 128
"""Threads that issue one wgmma."""


@dataclass(frozen=True)
class Work:
    """Busy clocks of one iteration, and clocks in which a warpgroup waits."""

    tensor: Array
    vector: Array
    """Special functions, instruction issue and SMEM traffic of the threads."""
    waits: Array
    """Waiting for results, and of threads for each other."""


def iteration_work(
    level: LevelForms,
    at: Evaluation,
    warpgroups: Array,
    hardware: Hardware,
    product_wait_clocks: float | None = None,
    sums_columns: bool = True,
) -> Work:
    """
    The work of one iteration of a level, without that of its loops and loads.

    `product_wait_clocks` is what a warpgroup waits for a matmul, if it does not wait
    for each to end before it goes on; `sums_columns` whether threads keep the sums of
    columns that they have, where they can.
    """
    if product_wait_clocks is None:
        product_wait_clocks = hardware.product_wait_clocks
    zero = np.zeros((1, 1))
    tensor = sum(
        (
            product_clocks(p, at, warpgroups, at.forms.warps == "columns", hardware)
            for p in level.products
        ),
        zero,
    )
    special = sum((at(n) * count for n, count in level.special), zero)
    issued = sum((at(n) * count for n, count in level.issued), zero)
    apart = sum((at(n) * count for n, count in level.apart), zero)
    shared = sum((at(bytes_) for bytes_ in level.shared_bytes), zero)
    busiest = np.maximum(
        special / hardware.special_per_clock, issued / hardware.lanes_per_clock
    )
    waits = zero + len(level.products) * product_wait_clocks
    for reduction in level.reductions:
        if reduction.is_summed_by_columns and sums_columns:
            continue
        rounds = 1 if reduction.in_fragment else LINEAR_ROUNDS
        waits = waits + rounds * hardware.row_exchange_clocks
        waits = waits + crosses_warps(reduction, at) * hardware.barrier_clocks
    waits = waits + level.meetings * hardware.barrier_clocks
    return Work(
        tensor,
        busiest
        + apart / hardware.lanes_per_clock
        + shared / hardware.smem_bytes_per_clock,
        waits,
    )


def crosses_warps(reduction: TileReduction, at: Evaluation) -> Array:
    """1 where the elements of a row lie in several warps, which then meet in SMEM."""
    if reduction.in_fragment:
        return np.full((1, 1), float(at.forms.warps == "columns"))
    return (at(reduction.row) > LINEAR_ROW).astype(np.float64)


def product_clocks(
    product: MatrixProduct,
    at: Evaluation,
    warpgroups: Array,
    by_columns: bool,
    hardware: Hardware,
) -> Array:
    """
    Tensor-core clocks of a matmul of tiles.

    An instruction takes as long as its arithmetic or as its operands in SMEM, whichever
    is more: 64 rows of A, and B, which each warpgroup reads for itself.
    """
    rows, columns = at(product.rows), at(product.columns)
    width = product.element_bytes
    steps = ceil_div(at(product.depth) * width, WGMMA_DEPTH_BYTES)
    count = ceil_div(rows, WGMMA_ROWS) * steps
    if by_columns:
        columns = columns / warpgroups
        count = count * warpgroups
    # Narrower elements go through at a higher rate, as many bytes a clock.
    flops = 2 * WGMMA_ROWS * columns * (WGMMA_DEPTH_BYTES / 2)
    arithmetic = flops / hardware.tensor_flops_per_clock_f16
    lhs_rows = 0 if product.lhs_in_registers else WGMMA_ROWS
    operands = (lhs_rows + columns) * WGMMA_DEPTH_BYTES / hardware.smem_bytes_per_clock
    clocks = count * (
        np.maximum(arithmetic, operands) + hardware.tensor_instruction_clocks
    )
    is_slower = "wgmma" in hardware.instructions and not product.takes_wgmma
    return clocks * MMA_SYNC_FACTOR if is_slower else clocks


def loading_clocks(level: LevelForms, at: Evaluation, hardware: Hardware) -> Array:
    """
    Clocks in which the port to L2 is busy with the loads of an iteration.

    A tile whose rows are no multiple of the widest swizzle is loaded in narrower boxes,
    which take more requests for the same bytes (by how much is assumed).
    """
    clocks = np.zeros((1, 1))
    for load in level.loads:
        row = at(load.span) * load.element_bytes
        narrow = np.where(row % (SWIZZLE_BYTES // 2) == 0, *NARROW_BOXES)
        factor = np.where(row % SWIZZLE_BYTES == 0, 1.0, narrow)
        is_narrow = load.in_boxes & (is_bulk(load, at, hardware) > 0)
        clocks = clocks + at.bytes(load) * np.where(is_narrow, factor, 1.0)
    return clocks / hardware.l2_bytes_per_clock


def is_bulk(load: Transfer, at: Evaluation, hardware: Hardware) -> Array:
    """1 where TMA can load a tile: rows begin at and span multiples of 16 bytes."""
    bulk = np.ones((1, 1), bool)
    for elements in (load.row_elements, load.span, *load.begins):
        size = at(elements) * load.element_bytes
        bulk = bulk & (size % hardware.memory_alignment_bytes == 0)
    return bulk.astype(np.float64)


def tensor_flops(at: Evaluation) -> Array:
    """Tensor-core arithmetic of a kernel, padding included."""

    def of(level: LevelForms) -> Array:
        zero = np.zeros((1, 1))
        own = sum(
            (2 * at(p.rows) * at(p.columns) * at(p.depth) for p in level.products), zero
        )
        return at(level.trips) * (own + sum((of(loop) for loop in level.loops), zero))

    return of(at.forms.level) * at.threadblocks
