"""What shares the units of a multiprocessor, and what the GPU's limits leave of it."""

from __future__ import annotations

import numpy as np

from cleave.passes.cost.evaluation import Array

SHARE_OF_REST = 0.01
"""Of what is hidden behind the longest of computation, memory and power."""
EXACT_SHARING = 12
"""Warpgroups up to which sharing is analyzed; more add what the busiest unit takes."""


def step_clocks(tensor: Array, vector: Array, waits: Array, sharing: Array) -> Array:
    """
    Clocks in which each of `sharing` warpgroups makes a step.

    A step takes `tensor` clocks of the tensor cores, `vector` clocks of the other units
    and `waits` clocks of neither. Mean value analysis of a closed network: a warpgroup
    that comes to a unit finds it as busy as the others alone would keep it.
    """
    most = min(int(sharing.max()), EXACT_SHARING)
    queue_tensor, queue_vector = np.zeros((1, 1)), np.zeros((1, 1))
    result = np.zeros((1, 1))
    for count in range(1, most + 1):
        at_tensor = tensor * (1 + queue_tensor)
        at_vector = vector * (1 + queue_vector)
        clocks = at_tensor + at_vector + waits
        queue_tensor = count * at_tensor / np.maximum(clocks, 1)
        queue_vector = count * at_vector / np.maximum(clocks, 1)
        result = np.where(sharing >= count, clocks, result)
    beyond = np.maximum(0, sharing - most)
    return result + beyond * np.maximum(tensor, vector)


def longest_of(computing: Array, memory: Array, power: Array) -> Array:
    """
    Seconds of a kernel that computes, moves data through DRAM and takes power.

    The longest hides the others; of two that are as long, the one with less to hide is
    first.
    """
    longest = np.maximum(computing, np.maximum(memory, power))
    return longest + SHARE_OF_REST * (computing + memory)
