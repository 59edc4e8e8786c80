"""
Every pass on the way from a graph to a planned tile program keeps its meaning: executed
before and after, on the examples and on the graphs in `test/graphs`, with tails. What
is printed of them is the same every time, and TileLang can read it.
"""

import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, Builtin, ModuleOp, bf16
from xdsl.parser import Parser

from cleave.dialects.algebra import Algebra
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import symbol
from cleave.dialects.facts import Fact
from cleave.dialects.itgraph import ItGraph, PlanOp
from cleave.dialects.tensor import FactAttr
from cleave.lowering.generated import load_generated
from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph
from cleave.lowering.numpy_itgraph import Order, execute_plan
from cleave.lowering.numpy_modules import execute_module
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.insert_casts import insert_casts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_masks import ScheduleMasksPass
from cleave.passes.schedule_reductions import schedule_reductions
from cleave.passes.substitute_facts import SubstituteFactsPass

ROOT = Path(__file__).parents[2]
ORDERS: tuple[Order, ...] = ("forward", "reverse", "random")

Sizes = dict[str, int]
Tiles = dict[str, int | None]


@dataclass(frozen=True)
class Case:
    """A graph, tile sizes of its output and reduced dims, and sizes to run on."""

    graph: str
    blocks: Tiles
    reductions: Tiles
    sizes: Sizes

    def __str__(self) -> str:
        sizes = "-".join(f"{name}{size}" for name, size in self.sizes.items())
        return f"{Path(self.graph).stem}-{sizes}"


def cases() -> list[Case]:
    table = tomllib.loads((ROOT / "test/graphs/cases.toml").read_text())
    return [
        Case(entry["graph"], entry["blocks"], entry["reductions"], sizes)
        for entry in table["case"]
        for sizes in entry["sizes"]
    ]


def loaded(case: Case, parse_ir: Callable[[str], ModuleOp], bound: bool) -> GraphOp:
    """The graph, its symbols bound to the sizes of the case, or to nothing."""
    module = parse_ir((ROOT / f"{case.graph}.mlir").read_text())
    graph = cast(GraphOp, module.body.block.first_op)
    facts = [fact for fact in graph.facts if fact.relation != "="]
    if bound:
        facts += [Fact(symbol(name), "=", size) for name, size in case.sizes.items()]
    graph.where = ArrayAttr(FactAttr(fact) for fact in facts)
    graph.verify()
    return graph


def random_inputs(graph: GraphOp, sizes: Sizes) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [evaluate_dims(type_.dims, sizes) for type_ in graph.input_types]
    return [rng.standard_normal(shape) * 0.3 for shape in shapes]


def stages(graph: GraphOp, case: Case) -> Iterator[tuple[str, PlanOp]]:
    """The plan after each pass, by the name of the pass."""
    plan = schedule_blocks(graph, case.blocks)
    yield "schedule-blocks", plan
    plan = schedule_reductions(plan, case.reductions)
    yield "schedule-reductions", plan
    for pass_ in (ScheduleMasksPass(), PlanMemoryPass(), SubstituteFactsPass()):
        module = ModuleOp([plan.clone()])
        pass_.apply(Context(), module)
        plan = cast(PlanOp, module.body.block.first_op)
        yield pass_.name, plan


def tolerance_of(graph: GraphOp) -> float:
    """What roundings may change, relative to the largest element of a result."""
    is_bf16 = any(type_.element_type == bf16 for type_ in graph.input_types)
    return 1e-2 if is_bf16 else 1e-3


def largest_error(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """Relative to the largest element of each result; infinite for NaNs."""
    errors = [
        float(np.max(np.abs(a.astype(np.float64) - b)) / np.max(np.abs(b)))
        for a, b in zip(found, expected, strict=True)
    ]
    return float(np.nan_to_num(max(errors), nan=np.inf))


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "free"])
@pytest.mark.parametrize("case", cases(), ids=str)
def test_every_pass_keeps_the_meaning(
    case: Case, bound: bool, parse_ir: Callable[[str], ModuleOp]
) -> None:
    graph = loaded(case, parse_ir, bound)
    inputs = random_inputs(graph, case.sizes)
    expected = execute_graph(graph, inputs, case.sizes)
    tolerance = tolerance_of(graph)

    insert_casts(graph)
    graph.verify()
    assert largest_error(execute_graph(graph, inputs, case.sizes), expected) == 0
    rounded = execute_graph(graph, inputs, case.sizes, "rounded")
    assert largest_error(rounded, expected) < tolerance
    for name, plan in stages(graph, case):
        plan.verify()
        # Symbols that are replaced by their values are no longer symbols.
        sizes = {s: n for s, n in case.sizes.items() if s in plan.symbol_names}
        for order in ORDERS:
            found = execute_plan(plan, inputs, sizes, order=order)
            assert largest_error(found, expected) < 1e-12, (name, order)
        found = execute_plan(plan, inputs, sizes, "rounded")
        assert largest_error(found, expected) < tolerance, name


def planned(case: Case, parse_ir: Callable[[str], ModuleOp]) -> PlanOp:
    graph = loaded(case, parse_ir, bound=True)
    insert_casts(graph)
    return next(plan for name, plan in stages(graph, case) if name == "plan-memory")


@pytest.mark.parametrize("case", cases(), ids=str)
def test_what_is_printed_computes_the_graph_and_is_read_by_tilelang(
    case: Case, parse_ir: Callable[[str], ModuleOp], tmp_path: Path
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(emit_module(planned(case, parse_ir)))
    module = load_generated(file)
    assert module.plan.name == Path(case.graph).stem

    graph = loaded(case, parse_ir, bound=True)
    inputs = random_inputs(graph, case.sizes)
    expected = execute_graph(graph, inputs)
    found = execute_module(module, inputs, {})
    assert largest_error(found, expected) < tolerance_of(graph)

    pytest.importorskip("tilelang")
    for function in module.functions().values():
        assert type(function()).__name__ == "PrimFunc"


def digest() -> str:
    """Of the IR and the module of every case; run by the test below."""

    def parse(text: str) -> ModuleOp:
        ctx = Context()
        for dialect in (Builtin, Algebra, ItGraph):
            ctx.load_dialect(dialect)
        return Parser(ctx, text).parse_module()

    found = hashlib.sha256()
    for case in cases():
        plan = planned(case, parse)
        text = emit_module(plan)
        assert emit_module(plan) == text
        found.update(f"{plan}{text}".encode())
    return found.hexdigest()


def test_what_is_printed_is_the_same_in_every_process() -> None:
    """Sets of names and operations have another order where hashes are others."""
    digests = {
        subprocess.run(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == hashlib.sha256().digest_size * 2


if __name__ == "__main__":
    print(digest())
