"""
`select-schedules` by meaning: what it selects computes what the graph does, whatever
the graph; and what it leaves out, it counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.hardware import load_hardware
from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.partition_reductions import PartitionReductionsPass
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.scheduling.ranking import Search
from cleave.passes.scheduling.selection import select, total_seconds, varied
from cleave.passes.select_schedules import SelectSchedulesPass
from cleave.passes.specialize import SpecializePass

Example = Callable[..., GraphOp]
Parse = Callable[[str], ModuleOp]
H200 = Search(load_hardware("h200"))
T = "!algebra.tensor"


def selected(module: ModuleOp, **options: Any) -> list[PlanOp]:
    """The plans that the pass adds, in order."""
    SelectSchedulesPass(**options).apply(Context(), module)
    module.verify()
    return [op for op in module.ops if isinstance(op, PlanOp)]


def assert_equal_results(graph: GraphOp, plans: Sequence[PlanOp]) -> None:
    """Every plan computes what the graph does, but for the order of sums."""
    sizes = {
        name: size
        for name, size in graph.facts.binding.items()
        if isinstance(size, int)
    }
    random = np.random.default_rng(0)
    inputs = [
        random.standard_normal(evaluate_dims(type_.dims, sizes)) / 4
        for type_ in graph.input_types
    ]
    expected = execute_graph(graph, inputs, sizes)
    for plan in plans:
        results = execute_plan(plan, inputs, sizes)
        for result, reference in zip(results, expected, strict=True):
            shape = reference.shape
            np.testing.assert_allclose(
                result.reshape(shape), reference, rtol=1e-9, atol=1e-9
            )


################################################################################
# Graphs of all kinds                                                          #
################################################################################

EXAMPLES: list[tuple[str, dict[str, int]]] = [
    ("matmul", {"M": 131, "K": 70, "N": 90}),
    ("matmul", {"M": 1, "K": 300, "N": 40}),
    ("swiglu", {"M": 16, "K": 144, "N": 100}),
    ("matmul_matmul", {"H": 2, "M": 67, "L": 150, "D": 24}),
    ("matmul_rowsum", {"M": 40, "K": 32, "N": 300}),
    ("rmsnorm_matmul", {"M": 70, "K": 200, "N": 130}),
    ("attention_fig5a", {"H": 2, "M": 16, "L": 200, "D": 72}),
    ("mha", {"H": 1, "M": 80, "L": 200, "D": 56}),
    ("gqa", {"H": 2, "G": 3, "M": 5, "L": 140, "D": 16}),
    ("mqa", {"H": 4, "M": 20, "L": 140, "D": 16}),
    ("mla_decode", {"B": 2, "H": 20, "L": 140, "C": 160, "R": 16}),
    ("attention_causal", {"H": 2, "M": 150, "L": 150, "D": 16}),
    ("attention_qk_norm", {"H": 2, "M": 70, "L": 130, "D": 16}),
    ("lora", {"M": 70, "K": 150, "N": 130, "R": 16}),
    ("gated_mlp", {"M": 20, "K": 70, "N": 150, "O": 40}),
    ("softmax", {"M": 33, "N": 1023}),
]


@pytest.mark.parametrize(("name", "sizes"), EXAMPLES, ids=str)
def test_plans_compute_what_the_graph_does(
    name: str, sizes: dict[str, int], example_graph: Example
) -> None:
    """Also in several kernels, with tails, and with dims smaller than their tiles."""
    graph = example_graph(name, **sizes)
    module = ModuleOp([graph])
    PartitionReductionsPass(limit=2).apply(Context(), module)
    plans = selected(module, top_k=4)
    assert len(plans) > 1
    for plan in plans:
        emit_module(plan)
    assert_equal_results(graph, plans)


OTHERS = {
    "reduction": f"""
        algebra.graph @reduction [M, L] where [M = 37, L = 4099]
            (%x: {T}<[M, L], f16>) -> ({T}<[M, 1], f32>) {{
          %o = algebra.reduce_sum %x dim 1
          algebra.return %o
        }}""",
    "chain": f"""
        algebra.graph @chain [M, L] where [M = 341, L = 67]
            (%x: {T}<[M, L], f16>, %y: {T}<[M, L], f16>) -> ({T}<[M, L], f16>) {{
          %a = algebra.silu %x
          %o = algebra.mul %a, %y
          algebra.return %o
        }}""",
    "two reduced dims": f"""
        algebra.graph @groups [N, G, C, S] where [N = 2, G = 3, C = 4, S = 341]
            (%x: {T}<[N, G, C, S], f16>) -> ({T}<[N, G, C, S], f16>) {{
          %q = algebra.square %x
          %a = algebra.reduce_sum %q dim 3
          %b = algebra.reduce_sum %a dim 2
          %r = algebra.rsqrt %b
          %o = algebra.mul %x, %r
          algebra.return %o
        }}""",
    "numbers for sizes": f"""
        algebra.graph @numbers
            (%x: {T}<[70, 48], f16>, %w: {T}<[48, 33], f16>) -> ({T}<[70, 33], f16>) {{
          %o = algebra.matmul %x, %w : {T}<[70, 33], f32>
          algebra.return %o
        }}""",
    "outer product": f"""
        algebra.graph @outer [M, N] where [M = 20, N = 100]
            (%x: {T}<[M, 1], f16>, %w: {T}<[1, N], f16>) -> ({T}<[M, N], f16>) {{
          %o = algebra.matmul %x, %w
          algebra.return %o
        }}""",
    "matrix times vector": f"""
        algebra.graph @vector [M, K] where [M = 70, K = 131]
            (%x: {T}<[M, K], f16>, %w: {T}<[1, K], f16>) -> ({T}<[M, 1], f16>) {{
          %o = algebra.matmul %x, %w transpose_rhs
          algebra.return %o
        }}""",
    "row times transposed matrix": f"""
        algebra.graph @row [N, K] where [N = 70, K = 131]
            (%x: {T}<[1, K], f16>, %w: {T}<[N, K], f16>) -> ({T}<[1, N], f16>) {{
          %o = algebra.matmul %x, %w transpose_rhs
          algebra.return %o
        }}""",
}


@pytest.mark.parametrize("name", OTHERS)
def test_plans_of_other_graphs(name: str, parse_ir: Parse) -> None:
    module = parse_ir(OTHERS[name])
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    PartitionReductionsPass(limit=2).apply(Context(), module)
    plans = selected(module, top_k=3)
    for plan in plans:
        emit_module(plan)
    assert_equal_results(graph, plans)


@pytest.mark.parametrize("head", [56, 72, 80, 96, 192, 256])
def test_head_dims_are_padded_where_tensor_cores_want_it(
    head: int, example_graph: Example
) -> None:
    (plan,) = selected(ModuleOp([example_graph("attention_fig5a", D=head)]), top_k=1)
    padded = -(-head // 16) * 16
    tiles = {name: size for name, size in plan.facts.binding.items() if name == "BD"}
    assert tiles == ({"BD": padded} if padded != head else {})


################################################################################
# Candidates                                                                   #
################################################################################

SPLIT = f"""
    algebra.graph @rows [M, K] where [M = 16, K = 8192]
        (%x: {T}<[M, K], f32>) -> ({T}<[M, 1], f32>) {{
      %o = algebra.reduce_sum %x dim 1
      algebra.return %o
    }}
    algebra.graph @rows_1 [M, K] where [M = 16, K = 8192]
        (%x: {T}<[M, K], f32>) -> ({T}<[M, 1], f32>) attributes {{equals = @rows}} {{
      %o = algebra.reduce_sum %x dim 1
      algebra.return %o
    }}""" + "".join(
    f"""
    algebra.graph @rows_2_s{s} [M, K, s] where [M = 16, K = 8192, s | K, s = {s}]
        (%x: {T}<[M, K], f32>) -> ({T}<[M, 1], f32>) attributes {{equals = @rows}} {{
      %0 = algebra.split %x dim 1 count s
      %1 = algebra.reduce_sum %0 dim 2 : {T}<[s, M, 1], f32>
      %2 = algebra.reduce_sum %1 dim 0 : {T}<[1, M, 1], f32>
      %o = algebra.reshape %2 to [M, 1] : {T}<[M, 1], f32>
      algebra.return %o
    }}"""
    for s in (2, 8)
)


OPEN = f"""
    algebra.graph @rows [M, K] where [M = 16, K = 8192]
        (%x: {T}<[M, K], f32>) -> ({T}<[M, 1], f32>) {{
      %o = algebra.reduce_sum %x dim 1
      algebra.return %o
    }}
    algebra.graph @rows_2 [M, K, s] where [M = 16, K = 8192, s | K]
        (%x: {T}<[M, K], f32>) -> ({T}<[M, 1], f32>) attributes {{equals = @rows}} {{
      %0 = algebra.split %x dim 1 count s
      %1 = algebra.reduce_sum %0 dim 2 : {T}<[s, M, 1], f32>
      %2 = algebra.reduce_sum %1 dim 0 : {T}<[1, M, 1], f32>
      %o = algebra.reshape %2 to [M, 1] : {T}<[M, 1], f32>
      algebra.return %o
    }}"""


def test_graphs_and_sequences_compete(parse_ir: Parse) -> None:
    module = parse_ir(SPLIT)
    PartitionSplitPass().apply(Context(), module)
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    (selection,) = select(graphs[1:], H200).values()
    kinds = {
        (len(candidate.graphs), candidate.graphs[0].graph_name)
        for candidate in selection.candidates
    }
    assert kinds == {(1, "rows_1"), (2, "rows_2_s2_split"), (2, "rows_2_s8_split")}
    times = [candidate.seconds for candidate in selection.candidates]
    assert times == sorted(times)
    several = [each for each in selection.candidates if len(each.graphs) > 1]
    alone = [schedule.seconds for schedule in several[0].schedules]
    assert several[0].seconds == pytest.approx(total_seconds(alone, H200.hardware))
    composed = several[0].plan(H200)
    kernels = [op for op in composed.body.block.ops if isinstance(op, KernelOp)]
    assert len(kernels) == 2
    plans = selected(module, top_k=3)
    assert [op.graph_name for op in module.ops if isinstance(op, GraphOp)] == ["rows"]
    assert_equal_results(graphs[0], [composed, *plans])


def test_counts_that_stay_together_compete_as_they_do_apart(parse_ir: Parse) -> None:
    """Also in chunks, where a count does not divide."""
    found: list[list[tuple[object, ...]]] = []
    for apart in (True, False):
        module = parse_ir(OPEN)
        SpecializePass(counts=(2, 5, 8), apart=apart).apply(Context(), module)
        PartitionSplitPass().apply(Context(), module)
        graph, *others = [op for op in module.ops if isinstance(op, GraphOp)]
        (selection,) = select(others, H200).values()
        split = [each for each in selection.candidates if len(each.graphs) > 1]
        found.append([(each.seconds, *map(str, each.schedules)) for each in split])
    apart, together = found
    assert apart == together
    firsts = {each.counts["s"]: each for each in reversed(split)}
    assert sorted(firsts) == [2, 5, 8]
    assert_equal_results(graph, [each.plan(H200) for each in firsts.values()])


def test_plans_say_what_they_are(example_graph: Example) -> None:
    module = ModuleOp([example_graph("matmul")])
    plans = selected(module, top_k=5, stats=True)
    assert [p.plan_name for p in plans] == [f"matmul_plan{n}" for n in range(5)]
    ranks = [cast(IntegerAttr, p.attributes["rank"]).value.data for p in plans]
    times = [cast(FloatAttr, p.attributes["predicted_us"]).value.data for p in plans]
    assert ranks == [*range(5)]
    assert times == sorted(times)
    assert 181 < times[0] < 200
    for plan in plans:
        assert str(plan.attributes["equals"]) == "@matmul"
        (schedule,) = cast(ArrayAttr[StringAttr], plan.attributes["schedule"])
        assert re.match(
            r"tile M=\d+ N=\d+, reduce K=\d+, (persistent|pipelined), ", schedule.data
        )
    (graph,) = [op for op in module.ops if isinstance(op, GraphOp)]
    counts = cast(DictionaryAttr, graph.attributes["schedules"]).data
    assert {"evaluated", "smem", "registers", "matmul rows"} <= counts.keys()


def test_kinds_that_come_near_are_tried(example_graph: Example) -> None:
    """Of two forms, both are among the first, and never three launches of one tile."""
    (selection,) = select([example_graph("matmul")], H200).values()
    first = list(islice(varied(selection.candidates, 8), 8))
    assert {c.schedules[0].form for c in first} == {"persistent", "pipelined"}
    assert len({candidate.kind for candidate in first[:4]}) == 4
    tiles = [(c.schedules[0].blocks, c.schedules[0].reductions) for c in first[4:]]
    assert all(tiles.count(tile) <= 2 for tile in tiles)


def test_folded_groups_share_a_tile(example_graph: Example) -> None:
    """Four queries of 16 rows fill the 64 rows of a matmul's tile."""
    module = ModuleOp([example_graph("gqa", M=16, D=64)])
    (plan,) = selected(module, top_k=1)
    kernel = next(op for op in plan.body.block.ops if isinstance(op, KernelOp))
    assert plan.facts.binding["BM"] == 64
    assert [str(r.hi) for r in kernel.ranges] == ["H"]


################################################################################
# Ablations, other GPUs, refusals                                              #
################################################################################


def test_without_layouts_nothing_computed_is_a_fragment(example_graph: Example) -> None:
    graph = example_graph("attention_fig5a", H=1, M=64, L=128, D=32)
    (plan,) = selected(ModuleOp([graph]), top_k=1, layouts=False)
    text = str(plan)
    assert "algebra.exp" in text
    assert not re.search(r"algebra\.(exp|cast|div).*fragment", text)
    assert_equal_results(graph, [plan])


def test_without_iteration_there_are_no_loops(example_graph: Example) -> None:
    graph = example_graph("matmul", M=64, K=512, N=64)
    plans = selected(ModuleOp([graph]), top_k=2, iterate=False)
    assert all("itgraph.loop" not in str(plan) for plan in plans)
    assert_equal_results(graph, plans)


TOO_LARGE = (
    r"no legal schedule: tiles take \d+ registers of each thread, which has \d+ for "
    r"them: most for %\w+ \('algebra.matmul' op\) of \[1, BM, L\] over D$"
)


def test_what_has_no_legal_schedule_is_refused(example_graph: Example) -> None:
    """The message says which rule binds whom, and the module is as it was."""
    module = ModuleOp([example_graph("attention_fig5a")])
    before = str(module)
    with pytest.raises(PassFailedException, match=TOO_LARGE):
        selected(module, iterate=False)
    assert str(module) == before
    with pytest.raises(PassFailedException, match="no hardware description for sm_70"):
        selected(module, arch="sm_70")


def test_an_a100_has_no_warps_that_only_load(example_graph: Example) -> None:
    graph = example_graph("matmul", M=200, K=128, N=96)
    plans = selected(ModuleOp([graph]), arch="sm_80", top_k=3)
    assert all('specialization = "none"' in str(plan) for plan in plans)
    assert_equal_results(graph, plans)
