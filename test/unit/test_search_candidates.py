"""Searches of graphs whose dims are no multiples of anything."""

from collections.abc import Callable

import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search.candidates import find_candidates
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.search.effort import EFFORTS, Ablation

H200 = load_hardware("h200")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("attention_softmax", {"H": 1, "M": 64, "L": 1024, "D": 56}),
        ("attention_softmax", {"H": 32, "M": 203, "L": 1023, "D": 80}),
        ("softmax", {"M": 33, "N": 1023}),
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
