"""
The cost model against what was measured and compiled: the times of generated kernels on
an H200, and the sizes from which kernels spill registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import load_hardware
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.form import Launch, Rule
from cleave.passes.cost.pipelined import PipelinedCost
from cleave.passes.insert_casts import insert_casts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.scheduling.selection import prepared_for_schedules
from cleave.passes.scheduling.structures import (
    LoopStructure,
    Warps,
    kernels_of,
    planned,
    schedule,
)

Example = Callable[..., GraphOp]
Tiles = dict[str, int]
H200 = load_hardware("h200")
FORM = PipelinedCost()
ROOT = Path(__file__).parents[2]


def evaluated(
    graph: GraphOp, blocks: Tiles, reductions: Tiles, warps: Warps = "rows"
) -> Evaluation:
    """The closed forms of a graph at these tile sizes."""
    insert_casts(graph)
    structure = LoopStructure(symbolic(blocks), symbolic(reductions))
    plan = planned(schedule(graph, structure).plan, PlanMemoryPass(warps=warps))
    (kernel,) = kernels_of(plan)
    sizes = {**blocks, **reductions}
    columns = {f"B{n}": np.array([s]) for n, s in sizes.items() if s != 1}
    return Evaluation(kernel_forms(kernel), columns)


def symbolic(tiles: Tiles) -> dict[str, int | None]:
    return {name: 1 if size == 1 else None for name, size in tiles.items()}


SQUARE = {"M": 4096, "K": 4096, "N": 4096}
GATED = {"M": 4096, "K": 4096, "N": 14336}
WIDE = {"H": 32, "M": 4096, "L": 4096, "D": 128}
SLIM = {"H": 32, "M": 4096, "L": 4096, "D": 64}


################################################################################
# Registers                                                                    #
################################################################################


@dataclass(frozen=True)
class Compiled:
    """Tile sizes and threads, and whether ptxas 13.0 spills registers or refuses."""

    graph: str
    sizes: Tiles
    blocks: Tiles
    reductions: Tiles
    threads: int
    compiles: bool

    def __str__(self) -> str:
        tiles = {**self.blocks, **self.reductions, "threads": self.threads}
        sizes = "-".join(f"{name}{size}" for name, size in tiles.items())
        return f"{self.graph}-D{self.sizes.get('D')}-{sizes}"


def chain(d: int, rows: int, keys: int, threads: int, compiles: bool) -> Compiled:
    sizes = {**WIDE, "D": d}
    blocks = {"H": 1, "M": rows}
    return Compiled("attention_fig5a", sizes, blocks, {"L": keys}, threads, compiles)


def sums(graph: str, rows: int, columns: int, threads: int, fits: bool) -> Compiled:
    return Compiled(graph, GATED, {"M": rows, "N": columns}, {"K": 64}, threads, fits)


COMPILED = [
    chain(128, 128, 128, 256, True),
    chain(128, 128, 256, 256, True),
    chain(64, 128, 256, 256, True),
    chain(192, 128, 208, 256, True),
    chain(192, 128, 224, 256, False),
    chain(256, 128, 160, 256, False),
    chain(256, 64, 192, 128, False),
    chain(128, 64, 256, 128, True),
    chain(128, 128, 128, 128, False),
    chain(64, 128, 128, 128, False),
    chain(128, 192, 128, 384, True),
    chain(128, 192, 144, 384, False),
    chain(96, 192, 192, 384, False),
    chain(64, 192, 192, 384, True),
    chain(64, 192, 208, 384, False),
    chain(64, 256, 64, 256, False),
    sums("matmul", 128, 256, 256, True),
    sums("matmul", 256, 208, 256, True),
    sums("matmul", 256, 224, 256, False),
    sums("matmul", 128, 208, 128, True),
    sums("matmul", 128, 224, 128, False),
    sums("matmul", 192, 192, 384, True),
    sums("matmul", 192, 240, 384, False),
    sums("swiglu", 128, 208, 256, True),
    sums("swiglu", 128, 224, 256, False),
    sums("swiglu", 256, 112, 256, False),
    sums("rmsnorm_matmul_scaled", 128, 256, 256, True),
    sums("rmsnorm_matmul_scaled", 256, 192, 256, True),
    sums("rmsnorm_matmul_scaled", 192, 192, 384, True),
]


@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_registers_decide_as_ptxas_does(case: Compiled, example_graph: Example) -> None:
    at = evaluated(
        example_graph(case.graph, **case.sizes), case.blocks, case.reductions
    )
    limits = FORM.limits(at, [Launch(case.threads, 2, "single-loop")], H200)
    about_registers = ("registers", "matmul registers", "chained matmul")
    exceeded = [n for n in about_registers if n in limits and limits[n].exceeded.any()]
    assert bool(exceeded) != case.compiles


################################################################################
# Other rules                                                                  #
################################################################################


@dataclass(frozen=True)
class Broken:
    """Tile sizes that break one rule."""

    blocks: Tiles
    reductions: Tiles
    launch: Launch
    warps: Warps = "rows"
    graph: str = "matmul"
    sizes: Tiles = field(default_factory=lambda: SQUARE)


def undivided(threads: int, stages: int = 2) -> Launch:
    return Launch(threads, stages, "none")


RULES = {
    "matmul rows": Broken({"M": 32, "N": 64}, {"K": 64}, undivided(128)),
    "matmul columns": Broken({"M": 64, "N": 24}, {"K": 64}, undivided(128)),
    "matmul depth": Broken({"M": 64, "N": 64}, {"K": 8}, undivided(128)),
    "smem": Broken({"M": 64, "N": 256}, {"K": 256}, undivided(256), "columns"),
    "stages": Broken(
        {"M": 64, "N": 64}, {"K": 32}, undivided(128, 3), sizes={**SQUARE, "K": 64}
    ),
    "grid": Broken(
        {"H": 1, "M": 64},
        {"L": 64},
        undivided(128),
        graph="attention_fig5a",
        sizes={**SLIM, "H": 70000},
    ),
    "threads": Broken(
        {"M": 64, "N": 256}, {"K": 64}, Launch(1024, 2, "single-loop"), "columns"
    ),
    "butterfly": Broken(
        {"H": 1, "M": 64},
        {"L": 192},
        undivided(384),
        "columns",
        "attention_fig5a",
        {**SLIM, "D": 96},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_broken_alone(rule: str, example_graph: Example) -> None:
    case = RULES[rule]
    graph = example_graph(case.graph, **case.sizes)
    at = evaluated(graph, case.blocks, case.reductions, case.warps)
    limits = FORM.limits(at, [case.launch], H200)
    assert [n for n, limit in limits.items() if limit.exceeded.any()] == [rule]
    limit = limits[rule]
    text = limit.text
    if not isinstance(limit, Rule):
        text = text.format(used=int(limit.used.max()), limit=int(limit.limit.max()))
    assert "{" not in text


def test_all_threads_divide_what_comes_before_a_loop(example_graph: Example) -> None:
    """With 128 that load, 256 that compute are 384, and 384 are 512: a power of two."""
    graph = example_graph("attention_qk_norm", **WIDE)
    at = evaluated(prepared_for_schedules(graph), {"H": 1, "M": 128}, {"L": 64})
    launches = [
        Launch(256, 2, "single-loop"),
        Launch(384, 2, "single-loop"),
        Launch(256, 2, "role-based"),
        undivided(256),
    ]
    limits = FORM.limits(at, launches, H200)
    rows = limits["prelude rows"]
    assert rows.exceeded.tolist() == [[True, False, False, False]]
    rule = limits["prelude"]
    assert rule.exceeded.tolist() == [[True, False, False, False]]
    named = [str(origin) for origin, own in rule.parts if own.any()]
    assert named
    assert all(name.endswith(" of [1, BM, D]") for name in named)


@pytest.mark.parametrize(("columns", "is_broken"), [(64, False), (56, True)])
def test_vectors_of_threads_end_where_rows_of_sums_do(
    columns: int, is_broken: bool, parse_ir: Callable[[str], ModuleOp]
) -> None:
    """Where sums are of columns: of 7 vectors a row, TileLang finds no layout."""
    text = """
        algebra.graph @columns [L, D] where [L = 4096, D = 512]
            (%x: !algebra.tensor<[L, D], f16>) -> (!algebra.tensor<[1, D], f32>) {
          %y = algebra.reduce_sum %x dim 0
          algebra.return %y
        }"""
    graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
    at = evaluated(graph, {"D": columns}, {"L": 256})
    limits = FORM.limits(at, [undivided(256)], H200)
    assert limits["rows"].exceeded.any() == is_broken


@pytest.mark.parametrize(
    ("rows", "columns", "is_broken"),
    [(1, 16384, False), (1, 32768, True), (64, 256, False), (128, 256, True)],
)
def test_lanes_of_what_tma_moves_at_once_have_16_bits_with_a_sign(
    rows: int, columns: int, is_broken: bool, parse_ir: Callable[[str], ModuleOp]
) -> None:
    text = (ROOT / "test/graphs/row_sum.mlir").read_text(encoding="utf-8")
    text = text.replace("[M, K]", "[M, K] where [M = 4096, K = 131072]", 1)
    graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
    at = evaluated(graph, {"M": rows}, {"K": columns})
    limits = FORM.limits(at, [undivided(256)], H200)
    assert limits["lanes"].exceeded.any() == is_broken


def test_tma_moves_operands_of_a_matmul_in_boxes(example_graph: Example) -> None:
    at = evaluated(example_graph("matmul", **SQUARE), {"M": 128, "N": 64}, {"K": 256})
    assert not FORM.limits(at, [undivided(256)], H200)["lanes"].exceeded.any()


def test_warps_that_divide_columns_leave_rows_to_all(example_graph: Example) -> None:
    """64 rows are too few for two warpgroups, unless they divide the columns."""
    launch = Launch(256, 2, "single-loop")
    expected: dict[Warps, bool] = {"rows": True, "columns": False}
    for warps, is_broken in expected.items():
        at = evaluated(example_graph("matmul"), {"M": 64, "N": 128}, {"K": 64}, warps)
        limits = FORM.limits(at, [launch], H200)
        assert limits["matmul rows"].exceeded.any() == is_broken


@pytest.mark.parametrize(
    ("rows", "threads", "is_broken"),
    [(8, 256, True), (8, 128, False), (4, 128, False), (4, 256, True)],
)
def test_threads_share_rows_that_meet_tiles_outside_of_loops(
    rows: int, threads: int, is_broken: bool, parse_ir: Callable[[str], ModuleOp]
) -> None:
    """
    In 256 threads, TileLang 0.1.15 lays vectors of 8 rows of 1024 over 128 threads a
    row, and then all of 4 rows of 5120 outside of the loop in each of them.
    """
    text = (ROOT / "test/graphs/layernorm.mlir").read_text(encoding="utf-8")
    text = text.replace("[M, K]", "[M, K] where [M = 4096, K = 5120]", 1)
    graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
    at = evaluated(graph, {"M": rows}, {"K": 1024})
    limits = FORM.limits(at, [undivided(threads)], H200)
    assert limits["rows beside tiles"].exceeded.any() == is_broken
    # A row that nothing outside of the loop takes may lie anywhere.
    text = (ROOT / "test/graphs/row_sum.mlir").read_text(encoding="utf-8")
    text = text.replace("[M, K]", "[M, K] where [M = 4096, K = 5120]", 1)
    graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
    at = evaluated(graph, {"M": rows}, {"K": 1024})
    limits = FORM.limits(at, [undivided(threads)], H200)
    assert "rows beside tiles" not in limits
