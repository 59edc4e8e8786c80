"""
Traffic with GMEM: bytes that L2 serves, and bytes that DRAM has to.

Threadblocks run in waves. What a wave reads is fetched once; the next wave finds it in
L2 if all that the waves touch fits there, and else fetches its own part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import Transfer
from cleave.passes.cost.evaluation import Array, Evaluation, ceil_div

PANELS = (8, 16)
"""Widths of L2 rasterization worth trying (TileOPs: 8 to 16 for GEMM on Hopper)."""
LEAST_GAIN = 0.1
KEPT_SHARE = 0.5
"""Of L2, what survives beside the stream of other reads; half of it is far away."""
SHORT_RUN_BYTES = 256
SHORT_RUN_SHARE = 0.72
"""Of the bandwidth, where a threadblock reads fewer bytes of a row of the tensor: with
64 columns, SwiGLU and RMSNorm of 16 and 64 rows reach 2.9e12 to 3.2e12 bytes per second
of 4.3e12, with 128 columns 4.1e12."""


@dataclass(frozen=True)
class Traffic:
    """Bytes in every configuration."""

    requested: Array
    """Loaded and stored by the threadblocks."""
    fetched: Array
    """Read from and written to DRAM."""
    memory_seconds: Array
    """That DRAM takes for them."""
    panel: Array
    """The width of L2 rasterization that this is for; 0 for none."""

    @property
    def missing(self) -> Array:
        """The share of what is requested that L2 does not have."""
        return np.minimum(1, self.fetched / np.maximum(1, self.requested))


def gmem_traffic(at: Evaluation, concurrent: Array, hardware: Hardware) -> Traffic:
    """
    The traffic of a kernel of which `concurrent` threadblocks run at a time, with the
    rasterization that fetches least.
    """
    forms = at.forms
    moved = [
        at(each.elements) * each.element_bytes for each in (*forms.loads, *forms.stores)
    ]
    written = sum(
        (at(store.elements) * store.element_bytes for store in forms.stores),
        np.zeros((1, 1)),
    )
    fetched, weighted = _fetched(at, concurrent, 0, hardware)
    panel = np.zeros_like(fetched)
    for width in PANELS if len(forms.extents) > 1 else ():
        other = _fetched(at, concurrent, width, hardware)
        better = other[0] < (1 - LEAST_GAIN) * fetched
        fetched = np.where(better, other[0], fetched)
        weighted = np.where(better, other[1], weighted)
        panel = np.where(better, width, panel)
    seconds = (weighted + written) / hardware.memory_bytes_per_second
    return Traffic(sum(moved, np.zeros((1, 1))), fetched + written, seconds, panel)


def _fetched(
    at: Evaluation, concurrent: Array, panel: int, hardware: Hardware
) -> tuple[Array, Array]:
    """
    Bytes read from DRAM with a panel width (0: row-major order); the same with those in
    short runs counted as what they keep the bandwidth busy for.
    """
    waves = np.maximum(1, at.threadblocks / concurrent)
    visited = _visited(at, concurrent, panel)
    total = weighted_total = np.zeros((1, 1))
    per_wave = weighted_waves = np.zeros((1, 1))
    for tensor, size in enumerate(at.forms.tensor_bytes):
        loads = [load for load in at.forms.loads if load.tensor == tensor]
        if not loads:
            continue
        requested = sum(
            (at(x.elements) * x.element_bytes for x in loads), np.zeros((1, 1))
        )
        once = np.minimum(at(size), requested)
        wave = max_of([_wave_bytes(load, at, visited) for load in loads])
        again = np.minimum(np.minimum(wave, once) * waves, requested)
        weight = max_of([_run_weight(load, at) for load in loads])
        total, weighted_total = total + once, weighted_total + weight * once
        per_wave, weighted_waves = per_wave + again, weighted_waves + weight * again
    fits = total <= KEPT_SHARE * hardware.l2_bytes
    return (
        np.where(fits, total, np.maximum(per_wave, total)),
        np.where(fits, weighted_total, np.maximum(weighted_waves, weighted_total)),
    )


def _run_weight(load: Transfer, at: Evaluation) -> Array:
    """How much longer DRAM takes for what lies in short pieces of the tensor."""
    run = at(load.run)
    is_short = run * load.element_bytes < SHORT_RUN_BYTES
    is_short = is_short & (run < at(load.row_elements))
    return np.where(is_short, 1 / SHORT_RUN_SHARE, 1.0)


def _wave_bytes(load: Transfer, at: Evaluation, visited: dict[str, Array]) -> Array:
    distinct = at(load.held) * load.element_bytes
    for name in load.iterators:
        distinct = distinct * visited[name]
    return distinct


def _visited(at: Evaluation, concurrent: Array, panel: int) -> dict[str, Array]:
    """How many values of each iterator a wave of threadblocks meets."""
    extents = [(name, at(extent)) for name, extent in at.forms.extents]
    visited: dict[str, Array] = {}
    left = concurrent
    if panel and len(extents) > 1:
        # Panels of `panel` values of the second iterator, all values of the fastest.
        (second, rows), (fastest, columns) = extents[-2:]
        visited[second] = np.minimum(np.minimum(panel, rows), left)
        across = ceil_div(left, visited[second])
        visited[fastest] = np.minimum(across, columns)
        panels = np.maximum(1, np.floor(left / (visited[second] * columns)))
        visited[second] = np.minimum(visited[second] * panels, rows)
        left = np.maximum(1, ceil_div(left, rows * columns))
        extents = extents[:-2]
    for name, extent in reversed(extents):
        visited[name] = np.minimum(left, extent)
        left = np.maximum(1, ceil_div(left, extent))
    return visited


def max_of(arrays: list[Array]) -> Array:
    result = arrays[0]
    for array in arrays[1:]:
        result = np.maximum(result, array)
    return result


def latency_clocks(traffic: Traffic, hardware: Hardware) -> Array:
    """Clocks from issuing a load to its data; the more of it L2 has, the fewer."""
    far = hardware.memory_latency_seconds - hardware.l2_latency_seconds
    seconds = hardware.l2_latency_seconds + traffic.missing * far
    return seconds * hardware.loaded_clock_hz
