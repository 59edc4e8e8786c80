"""
What the predicted time of each kernel of a plan consists of, and what binds it.

A resource's time is that of the kernel on a GPU on which nothing else takes time. So it
is asked of the cost model of any kernel form, which only has to say how long a kernel
runs on given hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import count
from math import ceil, inf
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import StringAttr

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.library import LibraryMatmul
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.hardware import Hardware
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.form import Launch, Specialization, Times
from cleave.passes.cost.forms import FORM_COSTS
from cleave.passes.cost.library import call_seconds

CUBLAS = "cuBLAS"
"""What a call of a library is called among kernels."""
LATENCY = "latency"
"""Of memory, and in which warps wait for matmuls and for each other."""
NO_TIME: Mapping[str, Mapping[str, float]] = {
    "tensor cores": {
        "tensor_flops_f16": inf,
        "tensor_flops_per_clock_f16": inf,
        "tensor_instruction_clocks": 0,
    },
    "special functions": {"special_per_clock": inf},
    "instructions": {"lanes_per_clock": inf},
    "SMEM": {"smem_bytes_per_clock": inf},
    "L2": {"l2_bytes_per_clock": inf},
    "GMEM": {"memory_bytes_per_second": inf},
    LATENCY: {
        "product_wait_clocks": 0,
        "row_exchange_clocks": 0,
        "barrier_clocks": 0,
        "l2_latency_seconds": 0,
        "memory_latency_seconds": 0,
        "block_start_seconds": 0,
    },
}
"""For each resource, the figures of hardware of which there is more than enough."""


@dataclass(frozen=True)
class Grid:
    """
    The threadblocks of a kernel. Each computes one tile of the output, or, where there
    are fewer threadblocks than `tiles`, one after the other.
    """

    tiles: int
    threadblocks: int
    blocks_per_multiprocessor: int
    """That one runs at a time."""
    waves: float
    """How often all multiprocessors are full; a last wave that is not counts less."""


@dataclass(frozen=True)
class KernelCost:
    """Why a kernel takes as long as the model says, in seconds without the launch."""

    name: str
    """As in the generated module, or `CUBLAS`."""
    grid: Grid | None
    """None for a call of a library, which does not tell."""
    seconds: float
    uneven: float
    """The part of it for which multiprocessors idle, as tiles do not divide evenly."""
    alone: Mapping[str, float]
    """The time of each resource if no other took any, the longest first."""

    @property
    def bound_by(self) -> str:
        """The resource that takes longest."""
        return next(iter(self.alone))

    def literal(self) -> dict[str, Any]:
        """The cost in milliseconds, as JSON takes it."""
        return {
            "kernel": self.name,
            "predicted_ms": self.seconds * 1e3,
            "bound_by": self.bound_by,
            "alone_ms": {name: time * 1e3 for name, time in self.alone.items()},
            "uneven_ms": self.uneven * 1e3,
            "grid": None if self.grid is None else asdict(self.grid),
        }


def plan_costs(plan: PlanOp, hardware: Hardware) -> list[KernelCost]:
    """The costs of what a plan launches, in order; all of its sizes are bound."""
    costs: list[KernelCost] = []
    numbers = count()
    for op in plan.body.block.ops:
        if isinstance(op, KernelOp):
            costs.append(_kernel_cost(f"kernel_{next(numbers)}", op, hardware))
        elif isinstance(op, LibraryMatmul):
            costs.append(_call_cost(op, plan, hardware))
    return costs


def plan_seconds(plan: PlanOp, hardware: Hardware) -> list[float]:
    """The predicted times in these costs, which take a tenth of the work."""
    seconds: list[float] = []
    for op in plan.body.block.ops:
        if isinstance(op, KernelOp):
            seconds.append(float(np.max(predicted_times(op, hardware).seconds)))
        elif isinstance(op, LibraryMatmul):
            seconds.append(call_seconds(op, plan, hardware))
    return seconds


def predicted_times(kernel: KernelOp, hardware: Hardware) -> Times:
    """The times of a kernel as it is planned, `(1, 1)` arrays."""
    return _times_on(kernel)(hardware)


def _times_on(kernel: KernelOp) -> Callable[[Hardware], Times]:
    assert kernel.form is not None  # it is planned
    (form,) = (each for each in FORM_COSTS if each.name == kernel.form.data)
    at, launch = Evaluation(kernel_forms(kernel), {}), launch_of(kernel)
    return lambda hardware: form.times(at, [launch], hardware)


def launch_of(kernel: KernelOp) -> Launch:
    """What was chosen for a planned kernel besides its tiles."""
    planner = kernel.attributes.get("specialization")
    return Launch(
        kernel.threads.value.data if kernel.threads else 1,
        kernel.stages.value.data if kernel.stages else 1,
        cast(Specialization, planner.data) if isinstance(planner, StringAttr) else None,
    )


def _kernel_cost(name: str, kernel: KernelOp, hardware: Hardware) -> KernelCost:
    times_on = _times_on(kernel)

    def seconds(on: Hardware) -> float:
        return float(np.max(times_on(on).seconds))

    times, total = times_on(hardware), seconds(hardware)
    tiles = int(np.max(times.tiles))
    blocks = max(1, int(np.max(times.blocks)))
    even = tiles / hardware.multiprocessors
    return KernelCost(
        name,
        Grid(tiles, int(np.max(times.threadblocks)), blocks, even / blocks),
        total,
        total * (1 - even / ceil(even)),
        _alone(seconds, hardware),
    )


def _call_cost(call: LibraryMatmul, plan: PlanOp, hardware: Hardware) -> KernelCost:
    def seconds(on: Hardware) -> float:
        return call_seconds(call, plan, on)

    alone = {name: time for name, time in _alone(seconds, hardware).items() if time}
    return KernelCost(CUBLAS, None, seconds(hardware), 0.0, alone)


def _alone(
    seconds: Callable[[Hardware], float], hardware: Hardware
) -> dict[str, float]:
    """
    Each resource's time, the longest first. What a form takes for fixed, such as the
    change from one tile to the next, is a latency.
    """

    def without(others: Iterable[str]) -> float:
        changes = {k: v for name in others for k, v in NO_TIME[name].items()}
        return seconds(replace(hardware, **changes))

    fixed = without(NO_TIME)
    alone = {
        name: without(NO_TIME.keys() - {name}) - (0.0 if name == LATENCY else fixed)
        for name in NO_TIME
    }
    return dict(sorted(alone.items(), key=lambda each: -each[1]))
