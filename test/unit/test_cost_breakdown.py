"""What a predicted time consists of: each resource alone, and what binds."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.lowering.search import candidates
from cleave.lowering.search.candidates import PlannedCandidate, find_candidates
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.passes.cost.breakdown import NO_TIME, plan_costs
from cleave.passes.scheduling.selection import total_seconds

Example = Callable[..., GraphOp]
H200 = load_hardware("h200")


def plans(graph: GraphOp) -> Sequence[PlannedCandidate]:
    ablation = Ablation(superoptimize=False)
    effort = EFFORTS["quick"]
    return find_candidates(
        symbolized(graph), effort, H200, ablation, False, lambda _: None
    ).plans


def test_the_parts_are_those_of_the_prediction(example_graph: Example) -> None:
    """For kernels of both forms, several of a plan, and behind calls of a library."""
    forms: set[str] = set()
    norm = plans(example_graph("rmsnorm_matmul"))
    softmax = plans(example_graph("attention_softmax", H=8, M=1024, L=1024, D=96))
    assert any(plan.schedules[0].startswith("matmul of a lib") for plan in softmax)
    for plan in (*norm, *softmax):
        costs = plan_costs(plan.plan, H200)
        assert len(costs) == len(plan.steps)
        for cost, step in zip(costs, plan.steps, strict=True):
            assert cost.seconds == pytest.approx(step.seconds)
            most = max(cost.alone.values())
            assert cost.alone[cost.bound_by] == most <= cost.seconds
            assert all(time >= 0 for time in cost.alone.values())
            assert (cost.grid is None) == ("library" in str(step))
            forms.add(str(step).split(", ")[-1 if cost.grid is None else 2])
    assert forms >= {"persistent", "pipelined"}


def test_a_plan_is_predicted_as_it_is_planned(
    example_graph: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as it was ranked: with known sizes, memory may be planned differently."""
    times = iter(range(9, 0, -1))

    def plan_seconds(plan: PlanOp, hardware: Hardware) -> list[float]:
        return [float(next(times))]

    monkeypatch.setattr(candidates, "plan_seconds", plan_seconds)
    found = [plan.predicted_ms for plan in plans(example_graph("matmul"))]
    planned = range(10 - len(found), 10)
    assert found == [total_seconds([time], H200) * 1e3 for time in planned]


def test_a_resource_that_there_is_less_of_binds(example_graph: Example) -> None:
    """Whatever binds a kernel now, on a GPU that is short of another it is that."""
    slow = {
        "tensor cores": replace(H200, tensor_flops_per_clock_f16=64),
        "special functions": replace(H200, special_per_clock=0.25),
        "instructions": replace(H200, lanes_per_clock=1),
        "SMEM": replace(H200, smem_bytes_per_clock=2),
        "L2": replace(H200, l2_bytes_per_clock=1),
        "GMEM": replace(H200, memory_bytes_per_second=1e9),
        "latency": replace(H200, barrier_clocks=1 << 20),
    }
    assert slow.keys() == NO_TIME.keys()
    plan = plans(example_graph("attention_softmax"))[0].plan

    def binds(hardware: Hardware) -> str:
        (cost,) = plan_costs(plan, hardware)
        return cost.bound_by

    assert {name: binds(gpu) for name, gpu in slow.items()} == {n: n for n in slow}


def test_a_grid_in_waves(example_graph: Example) -> None:
    persistent = next(
        plan
        for plan in plans(example_graph("matmul"))
        if "M=128 N=256" in (text := plan.schedules[0]) and "persistent" in text
    )
    (cost,) = plan_costs(persistent.plan, H200)
    assert cost.grid is not None
    assert (cost.grid.tiles, cost.grid.threadblocks) == (512, 132)
    assert cost.grid.blocks_per_multiprocessor == 1
    assert cost.grid.waves == pytest.approx(512 / 132)
    # The last of the four rounds has 116 tiles for 132 multiprocessors.
    assert cost.uneven == pytest.approx(cost.seconds * 16 / (4 * 132))
