"""Sums over a dim that warpgroups divide: added up once, behind their loop."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.generated import load_generated
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_modules import execute_module
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.insert_casts import insert_casts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.scheduling.structures import (
    LoopStructure,
    Warps,
    planned,
    schedule,
)
from cleave.passes.stabilize_exp import stabilize

SIZES = {"B": 2, "H": 64, "L": 160, "C": 32, "R": 16}


def module_text(graph: GraphOp, warps: Warps) -> str:
    insert_casts(graph)
    structure = LoopStructure({"B": 1, "H": 64}, {"L": 64}, has_tails=True)
    plan = schedule(graph, structure).plan
    return emit_module(planned(plan, PlanMemoryPass(threads=256, warps=warps)))


@pytest.mark.parametrize("is_safe", [False, True], ids=["sums", "rescaled sums"])
def test_the_sum_of_a_row_is_that_of_its_columns(
    example_graph: Callable[..., GraphOp], is_safe: bool, tmp_path: Path
) -> None:
    graph = example_graph("mla_decode", **SIZES)
    if is_safe:
        stabilize(graph)
    text = module_text(graph, "columns")
    assert "T.reduce_sum(l_columns, l, dim=1)" in text
    assert "T.reduce_sum(p" not in text
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    rng = np.random.default_rng(0)
    shapes = [(2, 64, 32), (2, 160, 32), (2, 64, 16), (2, 160, 16)]
    inputs = [0.3 * rng.standard_normal(shape) for shape in shapes]
    inputs = [array.astype(np.float16) for array in inputs]
    (expected,) = execute_graph(graph, inputs, SIZES, "float64")
    (found,) = execute_module(load_generated(path), inputs, {})
    error = np.abs(found.astype(np.float64) - expected)
    assert float(error.max()) <= 2e-3 * float(np.abs(expected).max())


def test_warpgroups_that_have_their_own_rows_add_up_each_tile(
    example_graph: Callable[..., GraphOp],
) -> None:
    text = module_text(example_graph("mla_decode", **SIZES), "rows")
    assert "columns" not in text
    assert "T.reduce_sum(p, l, dim=1, clear=False)" in text
