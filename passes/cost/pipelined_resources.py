"""
What a kernel of the form "pipelined" takes of a multiprocessor.

The figures of TileLang are of version 0.1.15, those of ptxas of CUDA 13.0; both were
found by compiling kernels up to the point at which they spill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import RegisterPoint
from cleave.passes.cost.evaluation import Array, Evaluation
from cleave.passes.cost.form import Launch, Mask
from cleave.passes.cost.work import WARPGROUP, crosses_warps, is_bulk

BARRIER_BYTES = 1024
"""Static SMEM for the barriers between loading and computing warps."""
WORD_BYTES = 4
"""What each thread leaves in SMEM where warps meet over a row."""
THREADS_OF_A_ROW = 4
"""Threads that hold one row of a tensor-core fragment."""
CONSUMER_REGISTERS = 240
"""What two warpgroups that compute take from the one that loads; three take 160."""
THREE_CONSUMER_REGISTERS = 160
FREE_REGISTERS = 32
"""
Of 240 registers, those that hold no tile: sums of two matmuls compile with 208 for
tiles and spill with 224. If a left operand is in registers, it is four more: attention
compiles with 202 and spills with 210.
"""
CHAIN_REGISTERS = 4
THREE_FREE_REGISTERS = 28
"""Of 160: attention compiles with 130 for tiles and spills with 138."""
RESCALE_REGISTERS = 16
"""More of 160 where attention rescales its sums: it compiles with 104 and spills with
120. Of 240 there are enough, except with the role-based planner."""
ROLE_BASED_RESCALE_REGISTERS = 40
"""There, it compiles with 160 and spills with 168."""
UNDIVIDED_FREE_REGISTERS = 48
"""The same where all warps load and compute: addresses and masks of the loads."""


@dataclass(frozen=True)
class Launches:
    """Launches as `(1, launches)` arrays."""

    threads: Array
    stages: Array
    is_single_loop: Mask
    is_role_based: Mask

    @classmethod
    def of(cls, launches: Sequence[Launch]) -> Launches:
        return cls(
            np.array([[float(each.threads) for each in launches]]),
            np.array([[float(each.stages) for each in launches]]),
            np.array([[each.specialization == "single-loop" for each in launches]]),
            np.array([[each.specialization == "role-based" for each in launches]]),
        )

    @property
    def warpgroups(self) -> Array:
        return np.maximum(1, self.threads / WARPGROUP)


@dataclass(frozen=True)
class Resources:
    """`(configurations, launches)` arrays."""

    has_producers: Mask
    """Some warps only load."""
    is_bulk: Mask
    """Every load of a pipelined loop is one that TMA can do."""
    threads: Array
    """That are launched, those that only load included."""
    smem_bytes: Array
    registers: Array
    """Of a thread that computes, for tiles."""
    register_cap: Array
    register_limit: Array
    """What tiles may take of it."""
    launch_registers: Array
    """Of a thread at the launch: where ptxas has to fit every single instruction."""
    blocks: Array
    """Threadblocks that a multiprocessor holds at a time; 0 if not even one."""


def resources(
    at: Evaluation, launches: Sequence[Launch], hardware: Hardware
) -> Resources:
    """The resources of every configuration and launch."""
    chosen = Launches.of(launches)
    some, every = _bulk_loads(at, hardware)
    has_producers = (chosen.is_single_loop | chosen.is_role_based) & some
    # The planner for one loop puts loads that threads do into a warpgroup of their own.
    extra = np.where(chosen.is_single_loop & ~every, 2 * WARPGROUP, WARPGROUP)
    threads = chosen.threads + np.where(has_producers, extra, 0)
    smem = _smem_bytes(at, chosen) + np.where(has_producers, BARRIER_BYTES, 0)
    tiles = tile_registers(at, chosen)
    per_thread = np.floor(hardware.registers_per_multiprocessor / threads / 8) * 8
    launch_registers = np.minimum(hardware.registers_per_thread, per_thread)
    three = chosen.warpgroups >= 3
    raised = np.where(three, THREE_CONSUMER_REGISTERS, CONSUMER_REGISTERS)
    keeps_launch_registers = ~has_producers | (chosen.is_single_loop & ~every)
    cap = np.where(keeps_launch_registers, launch_registers, raised)
    chained = any(product.lhs_in_registers for product in at.forms.products)
    divided = FREE_REGISTERS + (CHAIN_REGISTERS if chained else 0)
    divided = np.where(three, THREE_FREE_REGISTERS, divided)
    if chained and at.forms.rescales:
        taken = np.where(chosen.is_role_based, ROLE_BASED_RESCALE_REGISTERS, 0)
        divided = divided + np.where(three, RESCALE_REGISTERS, taken)
    spare = np.where(has_producers, divided, UNDIVIDED_FREE_REGISTERS)
    return Resources(
        has_producers,
        np.broadcast_to(every, has_producers.shape),
        threads,
        smem,
        tiles,
        cap,
        cap - spare,
        launch_registers,
        _blocks(at, chosen, has_producers, threads, smem, tiles + spare, hardware),
    )


def _bulk_loads(at: Evaluation, hardware: Hardware) -> tuple[Mask, Mask]:
    """Whether TMA can do some, and all, of the loads of pipelined loops."""
    some, every = np.zeros((1, 1), bool), np.ones((1, 1), bool)
    for level in at.forms.loops:
        for load in level.loads if level.is_pipelined else ():
            bulk = is_bulk(load, at, hardware) > 0
            some, every = some | bulk, every & bulk
    return some & ("tma" in hardware.instructions), every


def _smem_bytes(at: Evaluation, chosen: Launches) -> Array:
    """
    Dynamic SMEM. TileLang lets tiles that live at different times share bytes, except
    with the role-based planner.
    """
    buffers = at.forms.buffers
    sizes = [
        at.bytes(buffer) * (chosen.stages if buffer.is_staged else 1)
        for buffer in buffers
    ]
    total = sum(sizes, np.zeros((1, 1)))
    peak = np.zeros((1, 1))
    for position in {buffer.first for buffer in buffers}:
        live = [
            size
            for buffer, size in zip(buffers, sizes, strict=True)
            if buffer.first <= position <= buffer.last
        ]
        peak = np.maximum(peak, sum(live, np.zeros((1, 1))))
    meets = np.zeros((1, 1))
    for level in at.forms.level.walk():
        for reduction in level.reductions:
            if not reduction.is_summed_by_columns:
                meets = np.maximum(meets, crosses_warps(reduction, at))
    shared = np.where(chosen.is_role_based, total, peak)
    return shared + meets * WORD_BYTES * chosen.threads


def tile_registers(at: Evaluation, chosen: Launches) -> Array:
    """Registers of a thread that hold tiles, where most of them are live."""
    most = np.zeros((1, 1))
    for point in at.forms.points:
        most = np.maximum(most, _point_registers(point, at, chosen))
    return most


def _point_registers(point: RegisterPoint, at: Evaluation, chosen: Launches) -> Array:
    total = np.zeros((1, 1))
    for tile, count in point:
        words = at(tile.elements) * tile.element_bytes / 4
        holders = chosen.threads
        if tile.spread == "rows":
            by_columns = at.forms.warps == "columns"
            holders = (WARPGROUP if by_columns else chosen.threads) / THREADS_OF_A_ROW
        total = total + count * np.maximum(1, words / holders)
    return total


def _blocks(
    at: Evaluation,
    chosen: Launches,
    has_producers: Mask,
    threads: Array,
    smem: Array,
    registers: Array,
    hardware: Hardware,
) -> Array:
    reserved = smem + hardware.smem_bytes_reserved_per_block
    by_smem = np.floor(hardware.smem_bytes_per_multiprocessor / reserved)
    by_threads = np.floor(hardware.threads_per_multiprocessor / threads)
    rounded = np.ceil(np.clip(registers, 24, hardware.registers_per_thread) / 8) * 8
    by_registers = np.floor(hardware.registers_per_multiprocessor / threads / rounded)
    # Warps that hand registers to each other begin with all that there are.
    exchanged = has_producers & (chosen.is_single_loop | bool(at.forms.products))
    by_registers = np.where(exchanged, 1.0, by_registers)
    blocks = np.minimum(np.minimum(by_smem, by_threads), by_registers)
    return np.minimum(blocks, hardware.blocks_per_multiprocessor)
