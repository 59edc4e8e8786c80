"""The floor of a graph: what has to be moved and multiplied at least."""

from collections.abc import Callable

import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search.floor import floor_ms

H200 = load_hardware("h200")


def test_the_fewest_products_of_all_plans_count(
    example_graph: Callable[..., GraphOp],
) -> None:
    """As of linear attention, where the order of two matmuls is free."""
    graph = example_graph("matmul", M=4096, K=4096, N=4096)
    less = example_graph("matmul", M=4096, K=64, N=4096)
    as_written = floor_ms(graph, H200)
    assert as_written == pytest.approx(
        H200.floor_seconds(2 * 4096**3, 3 * 2 * 4096**2) * 1e3
    )
    assert as_written is not None
    found = floor_ms(graph, H200, [[less, less], [graph, less]])
    moved = H200.floor_seconds(2 * 2 * 4096 * 64 * 4096, 3 * 2 * 4096**2) * 1e3
    assert found == pytest.approx(moved)
    assert moved < as_written
