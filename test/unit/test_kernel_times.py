"""The cost model against the times of generated kernels on an H200."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.form import Launch, Specialization
from cleave.passes.cost.forms import FORM_COSTS
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.scheduling.selection import prepared_for_schedules, total_seconds
from cleave.passes.scheduling.structures import (
    LoopStructure,
    Warps,
    kernels_of,
    planned,
    schedule,
)
from cleave.passes.stabilize_exp import StabilizeExpPass

Example = Callable[..., GraphOp]
Tiles = Mapping[str, int]
H200 = load_hardware("h200")
FORMS = {form.name: form for form in FORM_COSTS}


@dataclass(frozen=True)
class Measured:
    """A kernel and its time on an H200, launch included, with clean L2."""

    microseconds: float
    graph: str
    sizes: Tiles
    blocks: Tiles
    reductions: Tiles
    threads: int
    stages: int
    form: str = "pipelined"
    specialization: Specialization | None = "single-loop"
    warps: Warps = "rows"
    is_safe: bool = False
    """Exponentials are of differences from a maximum."""

    def predicted(self, load: Example, hardware: Hardware = H200) -> float:
        graph = load(self.graph, **self.sizes)
        if self.is_safe:
            module = ModuleOp([graph])
            StabilizeExpPass().apply(Context(), module)
            (graph,) = (op for op in module.ops if isinstance(op, GraphOp))
        structure = LoopStructure(self.blocks, self.reductions, has_tails=True)
        memory = PlanMemoryPass(
            warps=self.warps, form=self.form, arch=hardware.arch, threads=self.threads
        )
        scheduled = schedule(prepared_for_schedules(graph), structure)
        (kernel,) = kernels_of(planned(scheduled.plan, memory))
        at = Evaluation(kernel_forms(kernel), {"": np.zeros(1, np.int64)})
        launch = Launch(self.threads, self.stages, self.specialization)
        times = FORMS[self.form].times(at, [launch], hardware)
        seconds = float(np.broadcast_to(times.seconds, (1, 1))[0, 0])
        return total_seconds([seconds], hardware) * 1e6


SQUARE = {"M": 4096, "K": 4096, "N": 4096}
NORMED = {"M": 4096, "K": 4096, "N": 6144}
GATED = {"M": 4096, "K": 4096, "N": 14336}
SUMMED = {"M": 4096, "K": 64, "N": 4096}
WIDE = {"H": 32, "M": 4096, "L": 4096, "D": 128}
SLIM = {"H": 32, "M": 4096, "L": 4096, "D": 64}


def attention(time: float, sizes: Tiles, keys: int, stages: int) -> Measured:
    blocks = {"H": 1, "M": 128}
    return Measured(time, "attention_fig5a", sizes, blocks, {"L": keys}, 256, stages)


def safe(time: float, sizes: Tiles, keys: int, stages: int) -> Measured:
    return replace(attention(time, sizes, keys, stages), is_safe=True)


def product(
    time: float, graph: str, sizes: Tiles, rows: int, columns: int, stages: int = 3
) -> Measured:
    blocks = {"M": rows, "N": columns}
    return Measured(time, graph, sizes, blocks, {"K": 64}, 256, stages)


def persistent(
    time: float, graph: str, sizes: Tiles, rows: int, columns: int, threads: int = 256
) -> Measured:
    kernel = product(time, graph, sizes, rows, columns, stages=4)
    return replace(kernel, form="persistent", specialization=None, threads=threads)


def with_rows(sizes: Tiles, rows: int) -> Tiles:
    return {**sizes, "M": rows}


GROUPS: dict[str, list[Measured]] = {
    "matmul": [
        persistent(183.6, "matmul", SQUARE, 128, 256),
        product(186.8, "matmul", SQUARE, 128, 256),
        product(189.0, "matmul", SQUARE, 256, 128),
        product(205.6, "matmul", SQUARE, 128, 128),
    ],
    "matmul of 512 rows": [
        product(27.3, "matmul", with_rows(SQUARE, 512), 128, 128, stages=4),
        product(28.7, "matmul", with_rows(SQUARE, 512), 256, 64, stages=4),
    ],
    "attention of 128": [attention(431.8, WIDE, 128, 2), attention(444.9, WIDE, 64, 3)],
    "attention of 64": [attention(311.0, SLIM, 128, 2), attention(320.6, SLIM, 64, 3)],
    "safe attention of 128": [safe(477.3, WIDE, 128, 3), safe(508.6, WIDE, 192, 2)],
    "safe attention of 64": [safe(313.5, SLIM, 256, 3)],
    "safe attention of 512 rows": [
        safe(43.7, with_rows(SLIM, 512), 256, 3),
        safe(53.2, with_rows(SLIM, 512), 192, 4),
    ],
    "matmul_rowsum": [
        Measured(18.4, "matmul_rowsum", SUMMED, {"M": 64}, {"N": 128}, 128, 2),
        Measured(21.4, "matmul_rowsum", SUMMED, {"M": 128}, {"N": 128}, 256, 2),
    ],
    "rmsnorm": [
        product(339.5, "rmsnorm_matmul_scaled", NORMED, 128, 256),
        product(477.0, "rmsnorm_matmul_scaled", NORMED, 128, 128),
    ],
    "swiglu": [
        persistent(1317.2, "swiglu", GATED, 128, 128),
        product(1380.0, "swiglu", GATED, 128, 128),
    ],
    "swiglu of 16 rows": [
        persistent(67.1, "swiglu", with_rows(GATED, 16), 64, 128, threads=128),
        persistent(88.3, "swiglu", with_rows(GATED, 16), 64, 64, threads=128),
    ],
    "matmul_matmul": [
        Measured(182.0, "matmul_matmul", SLIM, {"H": 1, "M": 128}, {"L": 128}, 256, 2)
    ],
}


@pytest.mark.parametrize("name", GROUPS)
def test_times_come_near_and_in_order(name: str, example_graph: Example) -> None:
    """Within an eighth of what was measured, and the faster tile is predicted so."""
    group = GROUPS[name]
    times = [each.predicted(example_graph) for each in group]
    assert times == pytest.approx([each.microseconds for each in group], rel=0.13)
    measured = [
        (each.microseconds, time) for each, time in zip(group, times, strict=True)
    ]
    for (first, one), (second, other) in combinations(measured, 2):
        assert (one < other) == (first < second)


def test_role_based_is_a_little_slower(example_graph: Example) -> None:
    one = product(186.8, "matmul", SQUARE, 128, 256)
    other = replace(one, specialization="role-based")
    ratio = other.predicted(example_graph) / one.predicted(example_graph)
    assert 1 < ratio < 1.03


def test_loads_of_one_stage_ahead_are_waited_for(example_graph: Example) -> None:
    """Of RMSNorm and MatMul of 512 rows in two kernels: 41.6 and 45.5 us."""
    few = with_rows(NORMED, 512)
    deep = product(0, "matmul", few, 128, 192, stages=4)
    flat = replace(deep, reductions={"K": 128}, stages=2)
    ratio = flat.predicted(example_graph) / deep.predicted(example_graph)
    assert 1.02 < ratio < 1.3


def test_moving_the_division_is_worth_it(example_graph: Example) -> None:
    """Softmax before the second matmul takes a second pass over the keys."""
    blocks, keys = {"H": 1, "M": 128}, {"L": 64}
    after = Measured(0, "attention_fig5a", WIDE, blocks, keys, 256, 2)
    after = replace(after, specialization="role-based")
    before = replace(after, graph="mha")
    assert before.predicted(example_graph) > 1.3 * after.predicted(example_graph)


def test_a_gpu_with_more_multiprocessors_is_faster(example_graph: Example) -> None:
    kernel = product(0, "swiglu", GATED, 128, 128)
    half = replace(
        H200,
        multiprocessors=66,
        tensor_flops_f16=H200.tensor_flops_f16 / 2,
        memory_bytes_per_second=H200.memory_bytes_per_second / 2,
    )
    ratio = kernel.predicted(example_graph, half) / kernel.predicted(example_graph)
    assert ratio == pytest.approx(2, rel=0.05)
