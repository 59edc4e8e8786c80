"""
How long a kernel of the form "pipelined" runs.

Threadblocks run in rounds: a multiprocessor takes as many as it holds at a time. A step
of a loop takes as long as its computation or its loads, whichever is more. Warpgroups
that compute share the tensor cores and the other units, and what one waits for, others
use (`step_clocks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import LevelForms
from cleave.passes.cost.evaluation import Array, Evaluation, ceil_div
from cleave.passes.cost.form import Launch, Times
from cleave.passes.cost.pipelined_resources import Launches, Resources
from cleave.passes.cost.sharing import longest_of, step_clocks
from cleave.passes.cost.traffic import Traffic, gmem_traffic, latency_clocks
from cleave.passes.cost.work import (
    is_bulk,
    iteration_work,
    loading_clocks,
    tensor_flops,
)

ROLE_BASED_FACTOR = 1.015
"""Five kernels with both planners on an H200: 0.4, 1.3, 1.4 and 6.8 % slower with the
role-based one, one 1.4 % faster."""
UNDIVIDED_FACTOR = 1.3
"""Matmuls whose operands all warps load by `cp.async`: not measured, assumed between
FlashAttention-2 and 3."""
COLUMNS_FACTOR = 1.06
"""Eight pairs of kernels that differ in nothing else: with columns, attention is 4 to
6 % slower, and sums of matmuls 4 to 43 %."""
COPY_INSTRUCTIONS = 4
"""Issued for each 16 bytes (or each element that is not aligned to them) that threads
copy: the address, a predicate, the copy."""


def kernel_times(
    at: Evaluation, launches: Sequence[Launch], used: Resources, hardware: Hardware
) -> Times:
    """The time of every configuration and launch, without that of launching."""
    return _Timing(at, Launches.of(launches), used, hardware).times()


@dataclass
class _Timing:
    at: Evaluation
    launch: Launches
    used: Resources
    hardware: Hardware

    def times(self) -> Times:
        hardware, at = self.hardware, self.at
        blocks = np.maximum(1, self.used.blocks)
        share = ceil_div(at.threadblocks, hardware.multiprocessors)
        held = np.minimum(blocks, share)
        traffic = gmem_traffic(at, held * hardware.multiprocessors, hardware)
        full = np.floor(share / held)
        rest = share - full * held
        clocks = full * self._round(held, traffic)
        last = self._round(np.maximum(1, rest), traffic)
        clocks = clocks + np.where(rest > 0, last, 0)
        computing = clocks / hardware.loaded_clock_hz
        ends = self._ends(held, traffic) / hardware.loaded_clock_hz
        memory = traffic.memory_seconds + hardware.block_start_seconds + ends
        power = tensor_flops(at) / hardware.tensor_flops_f16
        longest = longest_of(computing, memory, power)
        factor = np.where(self.launch.is_role_based, ROLE_BASED_FACTOR, 1.0)
        undivided = ~self.used.has_producers & bool(at.forms.products)
        factor = np.where(undivided, UNDIVIDED_FACTOR, factor)
        if at.forms.warps == "columns":
            factor = factor * COLUMNS_FACTOR
        tiles = at.threadblocks
        return Times(longest * factor, traffic.panel, tiles, tiles, blocks)

    # Rounds

    def _round(self, held: Array, traffic: Traffic) -> Array:
        """Clocks of one round of `held` threadblocks on a multiprocessor."""
        hardware = self.hardware
        start = hardware.block_start_seconds * hardware.loaded_clock_hz
        stored = sum(
            (self.at.bytes(store) for store in self.at.forms.stores), np.zeros((1, 1))
        )
        store = held * stored / hardware.l2_bytes_per_clock
        latency = latency_clocks(traffic, hardware)
        inside = self._level(self.at.forms.level, held, traffic)
        first = latency if self.at.forms.loops else 0
        return start + inside + store - first

    def _ends(self, held: Array, traffic: Traffic) -> Array:
        """Clocks before the first load arrives, and with what follows the last."""
        forms = self.at.forms
        levels = [level for level in forms.loops if not level.loops]
        total = latency_clocks(traffic, self.hardware)
        for level in [forms.level, *levels] if levels else ():
            total = total + self._computing(level, held)
        return total

    def _level(self, level: LevelForms, held: Array, traffic: Traffic) -> Array:
        """Clocks of one iteration of a level with all of its loops."""
        total = self._step(level, held, traffic)
        latency = latency_clocks(traffic, self.hardware)
        for loop in level.loops:
            steps = self.at(loop.trips) * self._level(loop, held, traffic)
            total = (
                total
                + latency
                + held * loading_clocks(loop, self.at, self.hardware)
                + steps
            )
        return total

    def _step(self, level: LevelForms, held: Array, traffic: Traffic) -> Array:
        """The same without loops."""
        computing = self._computing(level, held)
        loading = held * loading_clocks(level, self.at, self.hardware)
        latency = latency_clocks(traffic, self.hardware)
        if not level.is_pipelined:
            return computing + loading
        # Of the stage that is computed on, what a matmul has done with is loaded again.
        matmuls = max(1, len(level.products))
        ahead = self.launch.stages - (matmuls + 1) / (2 * matmuls)
        arriving = (latency + loading) / np.maximum(ahead, 0.5)
        overlapped = np.maximum(np.maximum(computing, loading), arriving)
        exposed = computing + loading + latency
        is_ahead = (self.launch.stages > 1) & (
            self.used.has_producers | self.used.is_bulk
        )
        return np.where(is_ahead, overlapped, exposed)

    def _computing(self, level: LevelForms, held: Array) -> Array:
        warpgroups = self.launch.warpgroups
        work = iteration_work(level, self.at, warpgroups, self.hardware)
        # Where every warp loads, all of them meet in every step.
        apart = np.where(self.used.has_producers, warpgroups, 1)
        vector = work.vector + self._copying(level)
        return step_clocks(
            work.tensor / apart, vector / apart, work.waits, apart * held
        )

    def _copying(self, level: LevelForms) -> Array:
        """Clocks in which warps issue copies; with warps for loads, those that must."""
        clocks = np.zeros((1, 1))
        for load in level.loads:
            width = self.hardware.memory_alignment_bytes / load.element_bytes
            bulk = is_bulk(load, self.at, self.hardware)
            elements = self.at.product(load.tile)
            copies = np.where(bulk > 0, elements / width, elements)
            issued = COPY_INSTRUCTIONS * copies / self.hardware.lanes_per_clock
            needed = np.where(self.used.has_producers & (bulk > 0), 0.0, issued)
            clocks = clocks + needed
        return clocks
