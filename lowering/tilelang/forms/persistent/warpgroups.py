"""The warpgroups of the form `persistent`: one loads, the others compute."""

from __future__ import annotations

from cleave.lowering.hardware import Hardware

WARPGROUP = 128
"""Threads that issue one wgmma."""
PRODUCER_REGISTERS = 24
"""What is left to a thread that only loads; the least that there is."""
MOST_RAISED_REGISTERS = 240
REGISTERS_BESIDE_TILES = 32
"""Of a consumer: descriptors, addresses, counters, what the epilogue computes with."""
REGISTERS_BESIDE_WGMMA = 26
"""
What ptxas wants besides the accumulators of one wgmma, or it stops with C7602; measured
on kernels of 512 and 640 threads with results of 128-208 columns.
"""


CONSUMER_BARRIER = 8
"""The named barrier at which consumers meet; TileLang takes those below itself."""


def raised_registers(consumers: int, hardware: Hardware) -> int | None:
    """
    The registers to which a consumer raises its share by what the producer gives up;
    None where it has as many from the start.
    """
    if consumers == 1:
        return None
    threads = (consumers + 1) * WARPGROUP
    launched = launch_registers(consumers, hardware) * threads
    left = launched - PRODUCER_REGISTERS * WARPGROUP
    return min(left // (consumers * WARPGROUP) // 8 * 8, MOST_RAISED_REGISTERS)


def available_registers(consumers: int, hardware: Hardware) -> int:
    """The registers of a consumer while it computes."""
    return raised_registers(consumers, hardware) or launch_registers(
        consumers, hardware
    )


def launch_registers(consumers: int, hardware: Hardware) -> int:
    """A thread's share of the registers when the threadblock starts."""
    threads = (consumers + 1) * WARPGROUP
    share = hardware.registers_per_multiprocessor // threads
    return min(share, hardware.registers_per_thread) // 8 * 8
