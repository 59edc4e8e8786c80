"""
Closed forms of planned kernels against what the NumPy executor counts when it runs
them, and SMEM against what TileLang allocates.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate, parse_dim_text, symbol
from cleave.dialects.itgraph.level import Level, memory_of
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.itgraph.tmap import TMap, names_in
from cleave.lowering import numpy_itgraph
from cleave.lowering.hardware import load_hardware
from cleave.lowering.numpy_algebra import evaluate_dims
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.lowering.numpy_tiles import Window
from cleave.passes.cost.closed_forms import KernelForms, LevelForms
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.form import Launch, Specialization
from cleave.passes.cost.pipelined import PipelinedCost
from cleave.passes.cost.pipelined_resources import resources
from cleave.passes.cost.transfers import Extents, GlobalView, transfer
from cleave.passes.insert_casts import insert_casts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.scheduling.structures import (
    LoopStructure,
    Warps,
    kernels_of,
    planned,
    schedule,
)

Example = Callable[..., GraphOp]
Tiles = dict[str, int]


def plan_of(graph: GraphOp, blocks: Tiles, reductions: Tiles, **launch: Any) -> PlanOp:
    """The planned program with these tile sizes; None in place of a size keeps it."""
    insert_casts(graph)
    structure = LoopStructure(blocks, reductions, has_tails=True)
    return planned(schedule(graph, structure).plan, PlanMemoryPass(**launch))


def symbolic_forms(
    graph: GraphOp, blocks: Tiles, reductions: Tiles, warps: Warps = "rows"
) -> tuple[KernelForms, dict[str, np.ndarray[Any, np.dtype[np.int64]]]]:
    """Closed forms with tile sizes as symbols, and these sizes for them."""
    insert_casts(graph)
    structure = LoopStructure(symbolic(blocks), symbolic(reductions), has_tails=True)
    plan = planned(schedule(graph, structure).plan, PlanMemoryPass(warps=warps))
    (kernel,) = kernels_of(plan)
    sizes = {
        f"B{n}": np.array([s]) for n, s in {**blocks, **reductions}.items() if s != 1
    }
    return kernel_forms(kernel), sizes


def symbolic(tiles: Tiles) -> dict[str, int | None]:
    return {name: 1 if size == 1 else None for name, size in tiles.items()}


################################################################################
# Loads, stores and trips                                                      #
################################################################################

CASES: list[tuple[str, Tiles, Tiles, Tiles]] = [
    ("matmul", {"M": 100, "N": 90, "K": 70}, {"M": 16, "N": 32}, {"K": 16}),
    ("matmul", {"M": 64, "N": 64, "K": 64}, {"M": 16, "N": 32}, {"K": 16}),
    ("swiglu", {"M": 33, "N": 40, "K": 48}, {"M": 16, "N": 16}, {"K": 16}),
    (
        "attention_fig5a",
        {"H": 2, "M": 40, "L": 50, "D": 8},
        {"H": 1, "M": 16},
        {"L": 16},
    ),
    ("mha", {"H": 2, "M": 32, "L": 48, "D": 8}, {"H": 1, "M": 16}, {"L": 16}),
    (
        "mla_decode",
        {"B": 2, "H": 24, "L": 40, "C": 32, "R": 8},
        {"B": 1, "H": 16, "C": 16},
        {"L": 16},
    ),
    ("rmsnorm_matmul", {"M": 20, "N": 40, "K": 36}, {"M": 16, "N": 16}, {"K": 16}),
    ("softmax", {"M": 20, "N": 40}, {"M": 4}, {}),
]


class Counted:
    """What an execution does, by level: iterations, tiles and elements loaded."""

    def __init__(self) -> None:
        self.trips: Counter[Level] = Counter()
        self.tiles: Counter[tuple[Level, int]] = Counter()
        self.elements: Counter[tuple[Level, int]] = Counter()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts every iteration that the executor runs."""
    counts = Counted()
    execution: Any = numpy_itgraph._Execution  # pyright: ignore[reportPrivateUsage]
    run_body = execution.run_body

    def counting(self: Any, level: Level, env: Any) -> Any:
        counts.trips[level] += 1
        for position, (argument, view) in enumerate(
            zip(level.view_arguments, level.views, strict=True)
        ):
            memory, source = memory_of(argument), memory_of(view.source)
            if memory and memory.space != "gmem" and source and source.space == "gmem":
                window: Window = self.window(view, env, "")
                inside = [int((p >= 0).sum()) for p in window.positions]
                counts.tiles[level, position] += 1
                counts.elements[level, position] += int(np.prod(inside))
        return run_body(self, level, env)

    monkeypatch.setattr(execution, "run_body", counting)
    return counts


def levels_of(forms: LevelForms, trips: float, at: Evaluation) -> Iterator[Any]:
    """Each level with its iterations in a threadblock, in the order of the text."""
    total = trips * float(at(forms.trips)[0, 0])
    yield forms, total
    for loop in forms.loops:
        yield from levels_of(loop, total, at)


@pytest.mark.parametrize(("name", "sizes", "blocks", "reductions"), CASES)
def test_loads_and_trips_are_what_the_executor_counts(
    name: str,
    sizes: Tiles,
    blocks: Tiles,
    reductions: Tiles,
    counted: Counted,
    example_graph: Example,
) -> None:
    graph = example_graph(name, **sizes)
    plan = plan_of(graph, blocks, reductions)
    inputs = [np.ones(evaluate_dims(t.dims, sizes)) for t in graph.input_types]
    execute_plan(plan, inputs, sizes)
    forms, tiles = symbolic_forms(graph, blocks, reductions)
    at = Evaluation(forms, tiles)
    blocks_run = float(at.threadblocks[0, 0])
    levels = [op for op in plan.walk() if isinstance(op, Level)]
    assert blocks_run == counted.trips[levels[0]]
    closed = list(levels_of(forms.level, 1.0, at))
    assert len(closed) == len(levels)
    for level, (level_forms, trips) in zip(levels, closed, strict=True):
        assert trips * blocks_run == counted.trips[level]
        loaded = [key for key in counted.tiles if key[0] is level]
        assert len(loaded) == len(level_forms.loads)
        for key, load in zip(
            sorted(loaded, key=lambda key: key[1]), level_forms.loads, strict=True
        ):
            assert float(at(load.moves)[0, 0]) * blocks_run == counted.tiles[key]
            assert float(at(load.elements)[0, 0]) == counted.elements[key]
    for store, type_ in zip(forms.stores, plan.output_types, strict=True):
        extents = evaluate_dims(type_.dims, sizes)
        assert float(at(store.elements)[0, 0]) == np.prod(extents)


def test_parts_of_a_split_are_read_once(parse_ir: Callable[[str], Any]) -> None:
    """A chunk that its tile does not divide is read beyond, into the next chunk."""
    module = parse_ir(
        """
        algebra.graph @sums [M, K, s] where [M = 8, K = 96, s | K]
            (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[s, M, 1], f32>) {
          %0 = algebra.split %x dim 1 count s
          %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
          algebra.return %1
        }
        """
    )
    (graph,) = module.ops
    structure = LoopStructure({"s": 1, "M": None}, {"K": None}, has_tails=True)
    (kernel,) = kernels_of(planned(schedule(graph, structure).plan, PlanMemoryPass()))
    forms = kernel_forms(kernel)
    columns = {"s": [4, 4], "BM": [4, 8], "BK": [8, 16]}
    at = Evaluation(forms, {name: np.array(each) for name, each in columns.items()})
    (load,) = forms.loads
    assert [*at.threadblocks[:, 0]] == [8, 4]
    assert [*at(load.elements)[:, 0]] == [8 * 96, 8 * (4 * 32 - 8)]
    assert [*at(load.held)[:, 0]] == [4 * 24, 8 * 32]


def test_iterators_that_move_nothing_load_again(example_graph: Example) -> None:
    """Each row of threadblocks loads all of W, each column all of X."""
    graph = example_graph("matmul")
    forms, _ = symbolic_forms(graph, {"M": 128, "N": 256}, {"K": 64})
    at = Evaluation(
        forms,
        {n: np.array(v) for n, v in {"BM": [128], "BN": [256], "BK": [64]}.items()},
    )
    x, w = forms.loads
    assert (x.iterators, w.iterators) == (("i_M",), ("i_N",))
    assert float(at(x.elements)[0, 0]) == 4096 * 4096 * (4096 / 256)
    assert float(at(w.elements)[0, 0]) == 4096 * 4096 * (4096 / 128)


def test_trips_that_outer_iterators_bound_are_those_of_their_mean(
    example_graph: Example,
) -> None:
    graph = example_graph("attention_causal", H=1, M=1024, L=1024, D=64)
    forms, _ = symbolic_forms(graph, {"H": 1, "M": 64}, {"L": 64})
    names = {name for loop in forms.loops for name in names_in([loop.trips])}
    assert names <= {"BM", "BL"}
    at = Evaluation(forms, {"BM": np.array([64]), "BL": np.array([64])})
    trips = [float(at(loop.trips)[0, 0]) for loop in forms.loops]
    assert all(8 <= count <= 9 for count in trips)  # of 16: half of them, on average


def test_trips_of_parts_that_a_mask_hides_are_a_mean(
    parse_ir: Callable[[str], Any],
) -> None:
    """Of 8 x 2 parts of 8 tiles each, 76 of 128 are visited, which is 4.75 a part."""
    module = parse_ir(
        """
        algebra.graph @part [M, L, s]
            where [M = 1024, L = 1024, s | L, s = 2]
            (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[s, M, 1], f32>) {
          %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
          %least = algebra.constant -inf : !algebra.tensor<[], f32>
          %shown = algebra.select %mask, %x, %least
          %p = algebra.exp %shown
          %parts = algebra.split %p dim 1 count s
          %sums = algebra.reduce_sum %parts dim 2
          algebra.return %sums
        }
        """
    )
    (graph,) = module.ops
    forms, sizes = symbolic_forms(graph, {"M": 128, "s": 1}, {"L": 64})
    (loop,) = forms.loops
    assert loop.varies
    trips = Evaluation(forms, {**sizes, "s": np.array([2])})(loop.trips)
    assert float(trips[0, 0]) == 5


def test_loops_that_vary_are_not_pipelined_by_all_warps(example_graph: Example) -> None:
    """TileLang cannot count the loads that are on their way at the end."""
    cost = PipelinedCost()
    for name, most in (("attention_causal", 1), ("attention_fig5a", 6)):
        graph = example_graph(name, H=1, M=1024, L=1024, D=64)
        forms, _ = symbolic_forms(graph, {"H": 1, "M": 64}, {"L": 64})
        one_loop = replace(forms, level=replace(forms.level, loops=forms.loops[:1]))
        launches = cost.launches(one_loop, load_hardware("h200"))
        assert {launch.specialization for launch in launches} >= {"none", "role-based"}
        stages = [each.stages for each in launches if each.specialization == "none"]
        assert max(stages) == most


################################################################################
# SMEM                                                                         #
################################################################################

BUILT: list[tuple[str, Tiles, Tiles, int, int, Specialization]] = [
    ("matmul", {"M": 128, "N": 256}, {"K": 64}, 256, 3, "single-loop"),
    ("matmul", {"M": 128, "N": 256}, {"K": 64}, 256, 3, "role-based"),
    ("matmul", {"M": 128, "N": 128}, {"K": 64}, 256, 3, "none"),
    ("attention_fig5a", {"H": 1, "M": 128}, {"L": 128}, 256, 2, "single-loop"),
    ("attention_fig5a", {"H": 1, "M": 64}, {"L": 128}, 256, 2, "single-loop"),
    ("mha", {"H": 1, "M": 128}, {"L": 64}, 256, 2, "role-based"),
    ("matmul_rowsum", {"M": 64}, {"N": 128}, 128, 2, "single-loop"),
    ("rmsnorm_matmul_scaled", {"M": 128, "N": 256}, {"K": 64}, 256, 3, "single-loop"),
    ("rmsnorm_matmul_scaled", {"M": 128, "N": 256}, {"K": 64}, 256, 3, "role-based"),
]


@pytest.mark.skipif(importlib.util.find_spec("tilelang") is None, reason="no TileLang")
@pytest.mark.parametrize(
    ("name", "blocks", "reductions", "threads", "stages", "specialization"), BUILT
)
def test_smem_is_what_tilelang_allocates(
    name: str,
    blocks: Tiles,
    reductions: Tiles,
    threads: int,
    stages: int,
    specialization: Specialization,
    example_graph: Example,
    tmp_path: Path,
) -> None:
    from cleave.lowering.cuda import lower
    from cleave.lowering.generated import load_generated
    from cleave.lowering.tilelang.module import emit_module

    graph = example_graph(name)
    plan = plan_of(
        graph,
        blocks,
        reductions,
        threads=threads,
        stages=stages,
        specialization=specialization,
    )
    source = tmp_path / "kernel.py"
    source.write_text(emit_module(plan), encoding="utf-8")
    (lowered,) = lower(load_generated(source), "sm_90a")
    (launch,) = lowered.launches.values()
    (kernel,) = kernels_of(plan)
    at = Evaluation(kernel_forms(kernel), {"": np.zeros(1, np.int64)})
    used = resources(
        at, [Launch(threads, stages, specialization)], load_hardware("h200")
    )
    static = 1024 if used.has_producers[0, 0] else 0
    assert used.threads[0, 0] == launch.threads
    assert used.smem_bytes[0, 0] == launch.dynamic_smem_bytes + static


def test_rows_begin_where_the_parts_around_a_loop_do() -> None:
    """By which bulk copies are told apart: parts of 3125 halves begin between words."""
    sizes = {"N": 100000, "s": 32, "BN": 64}
    part = parse_dim_text("i_s*(N floordiv s) + i_N*BN")
    view = GlobalView(0, (2, symbol("N")), TMap((0, part), (1, symbol("BN"))), 2)
    load = transfer(view, Extents({"i_s": symbol("s")}, {"i_N": 49}))
    assert {evaluate(dim, sizes) for dim in load.begins} == {0, 3125, 64}
