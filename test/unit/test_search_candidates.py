"""Searches of graphs whose dims are no multiples of anything."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search.candidates import find_candidates
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.lowering.search.equal_graphs import EqualGraphs, SearchTime
from cleave.lowering.search.unfused import is_unfused

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


def test_a_search_keeps_the_promising_graphs_and_says_so(
    example_graph: Callable[..., GraphOp],
) -> None:
    """Scales that may stand in several places make 24 graphs of QK-norm."""
    graph = symbolized(example_graph("attention_qk_norm", H=128, M=128, L=128, D=64))
    effort = replace(EFFORTS["quick"], graphs=2, cuts=0)
    found = find_candidates(graph, effort, H200, Ablation(), False, lambda _: None)
    # The graph itself and two equal ones, each whole and with a kernel a group.
    assert found.graphs == 6
    (note,) = found.notes
    assert "the 2 graphs of least work of every kind, and leaves out 21 " in note


def test_splits_that_there_is_no_time_for_lose_nothing(
    parse_ir: Callable[[str], ModuleOp], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, as if they were not found, and the graph itself were not cut either."""
    text = (ROOT / "test/graphs/layernorm.mlir").read_text(encoding="utf-8")
    text = text.replace("[M, K]", "[M, K] where [M = 2, K = 262144]", 1)
    graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
    graph = symbolized(graph)
    ablation = Ablation(superoptimize=False)
    before = find_candidates(
        graph, EFFORTS["quick"], H200, ablation, False, lambda _: None
    )
    cut = EqualGraphs._cut  # pyright: ignore[reportPrivateUsage]

    def cut_once(self: EqualGraphs, graphs: Sequence[GraphOp]) -> list[GraphOp]:
        pieces = cut(self, graphs)
        if self.effort.split == "none":
            return pieces
        return [piece for piece in pieces if is_unfused([piece])]

    monkeypatch.setattr(EqualGraphs, "_cut", cut_once)
    found = find_candidates(
        graph, EFFORTS["quick"], H200, ablation, False, lambda _: None
    )
    assert found.plans[0].schedules == before.plans[0].schedules


@pytest.mark.parametrize("bound", ["effort", "deadline"])
def test_a_search_without_time_has_plans_of_the_graph_itself(
    example_graph: Callable[..., GraphOp], bound: str
) -> None:
    graph = symbolized(example_graph("mha", H=2, M=128, L=128, D=64))
    effort, deadline = EFFORTS["quick"], time.monotonic()
    if bound == "effort":
        effort, deadline = replace(effort, search_seconds=0.0), None
    found = find_candidates(
        graph, effort, H200, Ablation(), False, lambda _: None, deadline=deadline
    )
    assert any(plan.is_unfused for plan in found.plans)
    itself = find_candidates(
        graph, effort, H200, Ablation(superoptimize=False), False, lambda _: None
    )
    assert found.graphs == itself.graphs
    (note,) = found.notes
    assert note.startswith("superoptimize: graph @mha: stopped by seconds=0; keeps ")


def test_graphs_that_there_is_no_time_for_are_counted(
    example_graph: Callable[..., GraphOp],
) -> None:
    graph = symbolized(example_graph("mha", H=2, M=128, L=128, D=64))
    equal = EqualGraphs(graph, EFFORTS["quick"], H200, SearchTime(60.0, None))
    equal.find()
    equal.test()
    equal.time = SearchTime(0.0, None)
    (whole,) = equal.divided()
    assert whole[0].graph_name == "mha_1"
    assert equal.notes == ["out of time: 1 of 2 equal graphs left unscheduled"]
