"""Vectors that meet in one expression, of a tile whose threads a matmul decides."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.scheduling.selection import prepared_for_schedules
from cleave.passes.scheduling.structures import LoopStructure, planned, schedule
from cleave.tools.graph_file import parse_graph

CleaveOpt = Callable[..., CompletedProcess[str]]

NORMALIZED = """
algebra.graph @normalized [H, M, L, D] where [H = 2, M = 64, L = 128, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>) -> (!algebra.tensor<[H, M, D], f32>) {
  %qq = algebra.square %q
  %qs = algebra.reduce_sum %qq dim 2
  %kk = algebra.square %k
  %ks = algebra.reduce_sum %kk dim 2
  %norms = algebra.transpose %ks permutation [0, 2, 1]
  %squares = algebra.mul %norms, %qs
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.div %qk, %squares
  %o = algebra.matmul %s, %v
  algebra.return %o
}"""


LOADED_SCORES = """
algebra.graph @attend [H, M, L, D] where [H = 2, M = 64, L = 256, D = 128]
    (%s: !algebra.tensor<[H, M, L], f32>, %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}"""


def plan_of(graph: GraphOp) -> PlanOp:
    structure = LoopStructure({"H": 1, "M": 64}, {"L": 64})
    scheduled = schedule(prepared_for_schedules(graph), structure)
    return planned(scheduled.plan, PlanMemoryPass(threads=128, stages=2))


def test_they_are_read_from_smem() -> None:
    """No thread has all that its elements of the fragment need of both."""
    graph = symbolized(parse_graph(NORMALIZED.encode(), "text"))
    plan = plan_of(graph)
    copied = {
        op.source.name_hint
        for op in plan.walk()
        if isinstance(op, Copy) and op.memory.data.space == "smem"
    }
    assert copied >= {"qs", "norms"}
    random = np.random.default_rng(0)
    inputs = [
        random.uniform(0.5, 1, shape).astype(np.float16)
        for shape in ((2, 64, 128), (2, 128, 128), (2, 128, 128))
    ]
    (expected,) = execute_graph(graph, inputs)
    (result,) = execute_plan(plan, inputs)
    np.testing.assert_allclose(result, expected, rtol=2e-3)


@pytest.mark.skipif(importlib.util.find_spec("tilelang") is None, reason="no TileLang")
def test_tilelang_finds_layouts_for_them(tmp_path: Path) -> None:
    from cleave.lowering.cuda import lower
    from cleave.lowering.generated import load_generated

    graph = symbolized(parse_graph(NORMALIZED.encode(), "text"))
    source = tmp_path / "kernel.py"
    source.write_text(emit_module(plan_of(graph)), encoding="utf-8")
    lower(load_generated(source), "sm_90a")


def test_each_element_of_loaded_scores_is_in_one_thread(
    cleave_opt: CleaveOpt, tmp_path: Path
) -> None:
    """
    No matmul decides the layout of scores that are loaded, and so of the vectors that
    are reduced from them, by which the loop rescales what a matmul adds up.
    """
    pytest.importorskip("tilelang")
    from cleave.lowering.cuda import lower
    from cleave.lowering.generated import load_generated

    emitted = cleave_opt(
        LOADED_SCORES,
        "-p",
        'stabilize-exp,insert-casts,schedule-blocks{tile="H=1 M=64"},'
        'schedule-reductions{tile="L=64"},plan-memory{threads=256}',
        "-t",
        "tilelang",
    )
    assert emitted.returncode == 0, emitted.stderr
    source = tmp_path / "kernel.py"
    source.write_text(emitted.stdout, encoding="utf-8")
    (kernel,) = lower(load_generated(source), "sm_90a")
    sizes = dict(re.findall(r"float (\w+)\[(\d+)\];", kernel.cuda))
    assert int(sizes["p"]) == 64 * 64 / 256
