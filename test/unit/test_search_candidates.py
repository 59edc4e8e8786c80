"""Searches of graphs whose dims are no multiples of anything."""

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search.candidates import find_candidates
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.search.effort import EFFORTS, Ablation

H200 = load_hardware("h200")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("attention_softmax", {"H": 1, "M": 64, "L": 1024, "D": 56}),
        ("attention_softmax", {"H": 32, "M": 203, "L": 1023, "D": 80}),
        ("softmax", {"M": 33, "N": 70001}),
    ],
)
def test_odd_sizes_have_plans(
    example_graph: Callable[..., GraphOp], name: str, sizes: dict[str, int]
) -> None:
    """With references in their loops, whatever tails the tiles of these have."""
    graph = symbolized(example_graph(name, **sizes))
    found = find_candidates(
        graph, EFFORTS["quick"], H200, Ablation(), False, lambda _: None
    )
    assert any("carry" in str(plan.plan) for plan in found.plans)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("attention_softmax", {"H": 16, "M": 577, "L": 577, "D": 64}),
        ("attention_softmax", {"H": 3, "M": 341, "L": 1023, "D": 57}),
        ("attention_softmax", {"H": 8, "M": 1, "L": 4099, "D": 128}),
        ("softmax", {"M": 64, "N": 100003}),
    ],
)
def test_odd_rows_have_unfused_plans(
    example_graph: Callable[..., GraphOp], name: str, sizes: dict[str, int]
) -> None:
    """Rows are padded to what threads divide."""
    graph = symbolized(example_graph(name, **sizes))
    found = find_candidates(
        graph, EFFORTS["quick"], H200, Ablation(), False, lambda _: None
    )
    assert any(plan.is_unfused for plan in found.plans)
    assert not found.notes


@pytest.mark.parametrize("columns", [57, 341, 1023, 4099])
def test_one_kernel_takes_odd_rows(
    example_graph: Callable[..., GraphOp], columns: int
) -> None:
    """A graph of one operator group is its own unfused plan."""
    graph = symbolized(example_graph("softmax", M=1023, N=columns))
    found = find_candidates(
        graph, EFFORTS["quick"], H200, Ablation(), False, lambda _: None
    )
    assert len(found.plans[0].schedules) == 1
    assert "reduce none" in found.plans[0].schedules[0]
    assert not found.notes


@pytest.mark.parametrize(("rows", "is_split"), [(2, True), (4096, False)])
def test_quick_splits_what_leaves_the_gpu_idle(
    parse_ir: Callable[[str], ModuleOp], rows: int, is_split: bool
) -> None:
    text = (ROOT / "test/graphs/row_sum.mlir").read_text(encoding="utf-8")
    text = text.replace("[M, K]", f"[M, K] where [M = {rows}, K = 1048576]", 1)
    graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
    steps: list[str] = []
    found = find_candidates(
        symbolized(graph), EFFORTS["quick"], H200, Ablation(), False, steps.append
    )
    assert (len(found.plans[0].schedules) == 2) == is_split
    assert steps.count("schedule") == 1 + is_split
