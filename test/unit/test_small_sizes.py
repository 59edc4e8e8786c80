"""Small sizes on which plans of split dims are executed: few parts, but none empty."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import prod
from random import Random

import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import symbol
from cleave.dialects.facts import Fact
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import FactAttr
from cleave.lowering.compilation.tile_check import check_plan
from cleave.lowering.hardware import load_hardware
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.search import compiling, gate_check, plan_check
from cleave.lowering.search.candidates import PlannedCandidate, find_candidates
from cleave.lowering.search.dim_splits import DimSplit, parts_for
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.lowering.search.gate_check import GraphGate
from cleave.lowering.search.plan_check import check_on_small_sizes, small_sizes
from cleave.passes.uneven_splits import chunk_of
from cleave.tools.graph_file import parse_graph

ParseIR = Callable[[str], ModuleOp]

EFFORT = replace(EFFORTS["normal"], cuts=1, plans=4)

REDUCED = """
algebra.graph @reduced [M, N] where [M = {M}, N = {N}]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[{shape}], f32>) {{
  %o = algebra.{operator} %x dim {dim}
  algebra.return %o
}}"""
ALL = """
algebra.graph @all [N] where [N = 262144]
    (%x: !algebra.tensor<[N], f16>) -> (!algebra.tensor<[1], f32>) {
  %o = algebra.reduce_sum %x dim 0
  algebra.return %o
}"""
COLUMNS = REDUCED.format(M=4099, N=1023, shape="1, N", operator="reduce_sum", dim=0)
MAXIMA = REDUCED.format(M=2, N=8_800_000, shape="M, 1", operator="reduce_max", dim=1)
EXPONENTIALS = """
algebra.graph @lse [M, N] where [M = 4096, N = 50257]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, 1], f32>) {
  %m = algebra.reduce_max %x dim 1
  %sh = algebra.sub %x, %m
  %p = algebra.exp %sh
  %l = algebra.reduce_sum %p dim 1
  %lg = algebra.log %l
  %o = algebra.add %m, %lg
  algebra.return %o
}"""
CHUNKS = """
algebra.graph @chunks [M, N, s, C]
    where [M = 256, N = 5000, s = 8, C = 640, s * C >= N]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[1, M, 1], f32>) {
  %a = algebra.split %x dim 1 count s chunk C
  %b = algebra.reduce_sum %a dim 2 : !algebra.tensor<[s, M, 1], f32>
  %o = algebra.reduce_sum %b dim 0 : !algebra.tensor<[1, M, 1], f32>
  algebra.return %o
}"""


def graph_of(text: str) -> GraphOp:
    return compiling.symbolized(parse_graph(text.encode(), "text"))


@cache
def split_plans(text: str) -> list[PlannedCandidate]:
    """What a search finds for a graph that splits its reduced dim."""
    found = find_candidates(
        graph_of(text), EFFORT, load_hardware("h200"), Ablation(), False, str
    )
    plans = [plan for plan in found.plans if "s" in plan.plan.symbol_names]
    assert plans
    return plans


@pytest.mark.parametrize("text", [ALL, COLUMNS, MAXIMA, EXPONENTIALS, CHUNKS])
def test_plans_of_parts_are_executed_and_judged(text: str):
    graph = graph_of(text)
    gate = GraphGate(graph)
    dim = "M" if text is COLUMNS else "N"
    for plan in split_plans(text):
        check = check_on_small_sizes(graph, plan.plan)
        assert list(check.reasons) == []
        assert check.sizes.get("M", 1) * check.sizes["N"] < 2**19
        count, size = check.sizes["s"], check.sizes[dim]
        assert 3 <= count <= 5
        chunk = check.sizes.get("C", size // count)
        assert (count - 1) * chunk < size <= count * chunk
        # As in the original, whose parts are equal or end before the last is full.
        assert (size % chunk == 0) == ("C" not in check.sizes)
        assert gate.reason(plan.pieces) is None


FIRST_PART = ("loop (i_s = 0 to s)", "loop (i_s = 0 to 1)")
FIRST_TERMS = ("%x[i_M * BM, i_s * C]", "%x[i_M * BM, 0]")
WITHOUT_END = ("limit N - i_C * BC - i_s * C", "limit C")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (COLUMNS, FIRST_PART),
        (MAXIMA, FIRST_PART),
        (EXPONENTIALS, FIRST_PART),
        (EXPONENTIALS, FIRST_TERMS),
        (EXPONENTIALS, WITHOUT_END),
    ],
)
def test_mistakes_in_what_splits_and_combines_are_found(
    parse_ir: ParseIR, text: str, mistake: tuple[str, str]
):
    right = str(split_plans(text)[0].plan)
    assert right.count(mistake[0]) == 1
    (wrong,) = parse_ir(right.replace(*mistake)).ops
    assert isinstance(wrong, PlanOp)
    wrong.verify()
    reasons = check_on_small_sizes(graph_of(text), wrong).reasons
    assert reasons
    assert reasons[0].startswith("result 0, in float64: ")


def drawn_sizes(plan: PlanOp, dim: str, random: Random) -> dict[str, int]:
    """Sizes of all symbols for which a plan that splits `dim` is right."""
    while True:
        sizes = {
            name: 2 ** random.randint(2, 7)
            if name[0] == "B"
            else random.randint(1, 999)
            for name in plan.symbol_names
        }
        count = sizes["s"] = random.randint(2, 40)
        if "C" not in sizes:
            return {**sizes, dim: count * random.randint(2, 9999)}
        extent = random.randint(2 * count, 400_000)
        chunk = chunk_of(extent, count)
        if chunk is None or not extent % chunk or not extent % count:
            continue
        if chunk % sizes.get("BC", 1) == 0:
            return {**sizes, dim: extent, "C": chunk}


def bind(holder: GraphOp | PlanOp, sizes: dict[str, int]) -> None:
    facts = [fact for fact in holder.facts if len(fact.names) > 1]
    facts += [Fact(symbol(name), "=", sizes[name]) for name in holder.symbol_names]
    holder.where = ArrayAttr(map(FactAttr, facts))
    holder.verify()


@pytest.mark.parametrize("text", [ALL, COLUMNS, MAXIMA, EXPONENTIALS])
def test_random_sizes_of_plans_keep_their_parts(text: str):
    graph, plan = graph_of(text), split_plans(text)[0].plan.clone()
    dim = "M" if text is COLUMNS else "N"
    executed = 0
    for seed in range(25):
        sizes = drawn_sizes(plan, dim, Random(seed))
        for holder in (graph, plan):
            bind(holder, sizes)
        small = small_sizes(graph, plan)
        where = f"seed {seed}: {sizes} became {small}"
        count, extent = small["s"], small[dim]
        assert min(3, sizes["s"]) <= count <= sizes["s"], where
        chunk = small.get("C", extent // count)
        assert chunk >= min(2, sizes[dim] // sizes["s"]), where
        assert (count - 1) * chunk < extent <= count * chunk, where
        assert ("C" not in small) == (extent == count * chunk), where
        step = max(32, sizes.get("BC", sizes.get("BN", 0)))
        assert extent <= 3 * count * step, where
        elements = prod(small[name] for name in graph.symbol_names)
        if executed < 4 and elements < 2**14:
            assert list(check_plan(graph, plan, small).reasons) == [], where
            executed += 1
    assert executed == 4


def test_the_gate_takes_few_parts_of_any_size():
    even, uneven = DimSplit(symbol("N"), "s"), DimSplit(symbol("N"), "s", "C")
    for size in range(1, 300):
        count = parts_for([even], {"N": size})["s"]
        assert size % count == 0
        assert count in (2, 3, 4) or (size % 2 and size % 3)
        assert count > 1 or size == 1
        count, chunk = parts_for([uneven], {"N": size}).values()
        assert count >= 3 or size < 7
        assert count >= 2 or size < 3
        assert (count - 1) * chunk < size
        assert size < count * chunk or count == 1
    parts = parts_for([even, DimSplit(even.part, "s_2")], {"N": 64})
    assert parts == {"s": 4, "s_2": 4}


# Defects


def broken(*_: object) -> None:
    raise ValueError("index can't contain negative values")


def test_a_plan_that_cannot_be_executed_is_one_that_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
):
    graph, plan = graph_of(ALL), split_plans(ALL)[0]
    gate = GraphGate(graph)
    monkeypatch.setattr(gate_check, "_run", broken)
    monkeypatch.setattr(plan_check, "check_plan", broken)
    reason = "internal error: ValueError: index can't contain negative values"
    with pytest.raises(ExecutionError, match=f"^{reason}$"):
        check_on_small_sizes(graph, plan.plan)
    rejected = gate.reason(plan.pieces)
    assert rejected == f"cannot be executed on small sizes: {reason}"
