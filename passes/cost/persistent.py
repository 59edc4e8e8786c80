"""
The cost of the form "persistent": as many threadblocks as multiprocessors, each of
which computes one output tile after the other.

One warpgroup loads, across the ends of tiles; the others stay one matmul ahead of the
one that they wait for. What `cleave.lowering.tilelang.forms.persistent` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import KernelForms, SharedBuffer
from cleave.passes.cost.evaluation import Array, Evaluation, ceil_div
from cleave.passes.cost.form import Launch, Limit, Mask, Rule, Times
from cleave.passes.cost.legality import (
    launch_limits,
    layout_rules,
    register_parts,
    shared_parts,
    tensor_core_rules,
)
from cleave.passes.cost.pipelined_resources import (
    BARRIER_BYTES,
    FREE_REGISTERS,
    Launches,
    tile_registers,
)
from cleave.passes.cost.sharing import longest_of, step_clocks
from cleave.passes.cost.traffic import gmem_traffic, latency_clocks
from cleave.passes.cost.work import (
    SWIZZLE_BYTES,
    WARPGROUP,
    is_bulk,
    iteration_work,
    loading_clocks,
    tensor_flops,
)

STAGES = (3, 4, 5, 6)
BUSY_STAGES = 2
"""That are not being loaded: those of two matmuls in flight."""
WARPGROUPS = (1, 2, 3)
BUFFER_ALIGNMENT = 1024
PRODUCER_REGISTERS = 24
MOST_REGISTERS = 240
MOST_BULK_ELEMENTS = 256
"""Of one dim of a tile that a bulk copy moves."""
ASYNCHRONOUS_WAIT_CLOCKS = 20
"""What is left of waiting for a matmul when the next one is issued already."""
TILE_CLOCKS = 400
"""From the last matmul of a tile to the first of the next, without the epilogue's work:
two barriers and one matmul that nothing overlaps (MatMul 4096^3, 184.8 us)."""


class PersistentCost:
    """See `FormCost`."""

    name = "persistent"

    def may_fit(self, forms: KernelForms, hardware: Hardware) -> bool:
        if not {"wgmma", "tma"} <= hardware.instructions or len(forms.loops) != 1:
            return False
        (loop,) = forms.loops
        return bool(loop.products) and not any(
            product.lhs_in_registers for product in forms.products
        )

    def launches(self, forms: KernelForms, hardware: Hardware) -> Sequence[Launch]:
        least = 2 if forms.warps == "columns" else 1
        return [
            Launch(WARPGROUP * warpgroups, stages)
            for warpgroups in WARPGROUPS
            if warpgroups >= least
            for stages in STAGES
        ]

    def limits(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Mapping[str, Limit | Rule]:
        chosen = Launches.of(launches)
        threads = chosen.threads + WARPGROUP
        launched = _launch_registers(threads, hardware)
        available = _available_registers(chosen, launched)
        return {
            **tensor_core_rules(at, chosen.warpgroups, launched, hardware),
            **layout_rules(at, chosen.threads),
            **launch_limits(at, np.ones((1, 1)), threads, hardware),
            "bulk copies": Rule(
                _breaks_bulk_copies(at, hardware),
                "a bulk copy takes rows of multiples of 16 bytes and tiles of at most "
                f"{MOST_BULK_ELEMENTS} elements along a dim",
            ),
            "registers": Limit(
                tile_registers(at, chosen) + _combined_registers(at, chosen),
                available - FREE_REGISTERS,
                "tiles take {used} registers of each thread, "
                "which has {limit} for them",
                register_parts(at),
            ),
            "smem": Limit(
                _smem_bytes(at, chosen),
                np.full((1, 1), float(hardware.smem_bytes_per_block)),
                "tiles take {used} bytes of SMEM, of which a threadblock has {limit}",
                shared_parts(at),
            ),
        }

    def times(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Times:
        warpgroups = Launches.of(launches).warpgroups
        workers = np.minimum(at.threadblocks, hardware.multiprocessors)
        traffic = gmem_traffic(at, workers, hardware)
        (loop,) = at.forms.loops
        work = iteration_work(
            loop,
            at,
            warpgroups,
            hardware,
            ASYNCHRONOUS_WAIT_CLOCKS,
            sums_columns=False,
        )
        step = step_clocks(
            work.tensor / warpgroups, work.vector / warpgroups, work.waits, warpgroups
        )
        loading = loading_clocks(loop, at, hardware)
        arrival = loading + latency_clocks(traffic, hardware)
        ahead = np.maximum(0.1, Launches.of(launches).stages - BUSY_STAGES)
        loading = np.maximum(loading, arrival / ahead)
        after = iteration_work(at.forms.level, at, warpgroups, hardware)
        epilogue = TILE_CLOCKS + after.vector + after.waits
        tile = at(loop.trips) * np.maximum(step, loading) + epilogue
        tiles = ceil_div(at.threadblocks, hardware.multiprocessors)
        start = hardware.block_start_seconds * hardware.loaded_clock_hz
        first = loading + latency_clocks(traffic, hardware)
        stored = sum((at.bytes(x) for x in at.forms.stores), np.zeros((1, 1)))
        last = stored / hardware.l2_bytes_per_clock
        clocks = start + first + tiles * tile + last
        computing = clocks / hardware.loaded_clock_hz
        ends = start + first + step + epilogue
        memory = traffic.memory_seconds + ends / hardware.loaded_clock_hz
        power = tensor_flops(at) / hardware.tensor_flops_f16
        seconds = longest_of(computing, memory, power)
        return Times(seconds, traffic.panel, at.threadblocks, workers, np.ones((1, 1)))


def _launch_registers(threads: Array, hardware: Hardware) -> Array:
    share = np.floor(hardware.registers_per_multiprocessor / threads)
    return np.floor(np.minimum(share, hardware.registers_per_thread) / 8) * 8


def _available_registers(chosen: Launches, launched: Array) -> Array:
    """What consumers have once the producer has handed over its registers."""
    total = launched * (chosen.threads + WARPGROUP) - PRODUCER_REGISTERS * WARPGROUP
    raised = np.floor(total / chosen.threads / 8) * 8
    raised = np.minimum(raised, MOST_REGISTERS)
    return np.where(chosen.warpgroups > 1, raised, launched)


def _combined_registers(at: Evaluation, chosen: Launches) -> Array:
    """
    What holds the output where it is computed from several sums and stored at once, so
    that they are needed to the end: SwiGLU in 128x160 spills, unlike in 128x128.
    """
    total = np.zeros((1, 1))
    for buffer in at.forms.buffers if len(at.forms.products) > 1 else ():
        if buffer.is_stored:
            elements = at(buffer.tile[-2]) * at(buffer.tile[-1])
            is_whole = at(buffer.tile[-1]) % _part(buffer) != 0
            total = total + np.where(is_whole, elements / chosen.threads, 0)
    return total


def _part(buffer: SharedBuffer) -> int:
    """Columns of an output that are stored at a time."""
    return SWIZZLE_BYTES // buffer.element_bytes


def _smem_bytes(at: Evaluation, chosen: Launches) -> Array:
    total = np.full((1, 1), float(BARRIER_BYTES))
    for buffer in at.forms.buffers:
        if buffer.is_stored:
            total = total + _staging_bytes(buffer, at)
        elif buffer.is_staged:
            total = total + at.bytes(buffer) * chosen.stages
        else:
            total = total + _aligned(at.bytes(buffer))
    return total


def _staging_bytes(buffer: SharedBuffer, at: Evaluation) -> Array:
    """The narrowest part of an output that can be stored at a time."""
    rows, columns = at(buffer.tile[-2]), at(buffer.tile[-1])
    if at.forms.warps == "rows":
        part = _part(buffer)
        columns = np.where(columns % part == 0, np.minimum(columns, part), columns)
    return _aligned(rows * columns * buffer.element_bytes)


def _aligned(size: Array) -> Array:
    return ceil_div(size, BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT


def _breaks_bulk_copies(at: Evaluation, hardware: Hardware) -> Mask:
    broken = np.zeros((1, 1), bool)
    for moved in (*at.forms.loads, *at.forms.stores):
        broken = broken | (is_bulk(moved, at, hardware) == 0)
        *outer, _ = [dim for dim in moved.tile if dim != 1] or [1]
        for dim in outer:
            broken = broken | (at(dim) > MOST_BULK_ELEMENTS)
    return broken
