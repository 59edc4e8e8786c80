"""
Rows that see nothing in whole tiles or parts, executed from the TileLang text.

Their exponents are differences of equal huge numbers, which have to be 0.
"""

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import prepare, schedule
from cleave.lowering.gate.gate import NumericalGate
from cleave.lowering.generated import load_generated
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_modules import execute_module

Array = NDArray[Any]
ParseIR = Callable[[str], ModuleOp]
CleaveOpt = Callable[..., CompletedProcess[str]]

SIZES = {"M": 32, "L": 96, "D": 16}
TILE = 16

ATTENTION = """
algebra.graph @attention [M, L, D] where [M = 32, L = 96, D = 16]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %x: !algebra.tensor<[M, L], {element}>)
    -> (!algebra.tensor<[M, D], f32>, !algebra.tensor<[M, 1], f32>) {{
  %scale = algebra.constant 0.3 : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  {exponent}
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  {output}
  %lse = algebra.log %l
  algebra.return %o, %lse
}}"""
ADDED = """%scaled = algebra.mul %qk, %scale
  %s = algebra.add %scaled, %x"""
ADDED_BEFORE = """%biased = algebra.add %qk, %x
  %s = algebra.mul %biased, %scale"""
SELECTED = """%scaled = algebra.mul %qk, %scale
  %hidden = algebra.constant {hidden} : !algebra.tensor<[], f32>
  %s = algebra.select %x, %scaled, %hidden"""
ONE_LOOP = """%a = algebra.matmul %p, %v
  %o = algebra.div %a, %l"""
TWO_LOOPS = """%n = algebra.div %p, %l
  %o = algebra.matmul %n, %v"""

# Parts of two tiles each.
SPLIT = """
algebra.graph @attention [M, L, D, s] where [M = 32, L = 96, D = 16, s = 3, s | L]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %x: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[1, M, D], f32>, !algebra.tensor<[1, M, 1], f32>) {
  %scale = algebra.constant 0.3 : !algebra.tensor<[], f32>
  %ks = algebra.split %k dim 0 count s
  %vs = algebra.split %v dim 0 count s
  %xs = algebra.split %x dim 1 count s
  %qk = algebra.matmul %q, %ks transpose_rhs
  %scaled = algebra.mul %qk, %scale
  %e = algebra.add %scaled, %xs
  %p = algebra.exp %e
  %ls = algebra.reduce_sum %p dim 2
  %as = algebra.matmul %p, %vs
  %l = algebra.reduce_sum %ls dim 0
  %a = algebra.reduce_sum %as dim 0
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}"""
SPLIT_PASSES = [
    "stabilize-exp",
    "partition-split",
    "insert-casts",
    "sink-scales",
    'schedule-blocks{tile="M=32"}',
    'schedule-reductions{tile="L=16" only=attention_split}',
    "schedule-masks",
    "compose-plans",
    "plan-memory",
]


def seen_keys() -> Array:
    """Which keys a row sees: all but the first, the last, some, all tiles but one."""
    seen = np.random.default_rng(1).random((SIZES["M"], SIZES["L"])) < 0.7
    seen[0:6, : 2 * TILE] = False
    seen[6:12, 3 * TILE :] = False
    seen[12:18, TILE : 5 * TILE] = False
    seen[18:20] = False
    return seen


def added_bias(seen: Array, hidden: str) -> Array:
    bias = np.random.default_rng(3).standard_normal(seen.shape)
    return np.where(seen, bias, float(hidden)).astype(np.float32)


def random_inputs(x: Array) -> list[Array]:
    rng = np.random.default_rng(2)
    dims = ("M", "L", "L")
    q, k, v = (rng.standard_normal((SIZES[dim], SIZES["D"])) for dim in dims)
    return [array.astype(np.float16) for array in (q, k, v)] + [x]


def graph_in(module: ModuleOp) -> GraphOp:
    graph = module.body.block.first_op
    assert isinstance(graph, GraphOp)
    graph.verify()
    return graph


def require_right(text: str, graph: GraphOp, inputs: list[Array], folder: Path) -> None:
    """
    Compare what a module computes with the graph, whose exponents are safe. In float32,
    in which nothing is left of a score beside -1e9.
    """
    file = folder / "module.py"
    file.write_text(text)
    results = execute_module(load_generated(file), inputs, {})
    with np.errstate(all="ignore"):
        references = execute_graph(graph, inputs, precision="rounded")
    for result, expected in zip(results, references, strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("output", [ONE_LOOP, TWO_LOOPS], ids=["one loop", "two loops"])
@pytest.mark.parametrize("hidden", ["-inf", "-1.0e30", "-1.0e9"])
@pytest.mark.parametrize(
    "exponent",
    [ADDED, ADDED_BEFORE, SELECTED],
    ids=["added", "added before scaling", "selected"],
)
def test_rows_hidden_in_whole_tiles(
    parse_ir: ParseIR, exponent: str, hidden: str, output: str, tmp_path: Path
):
    selects = exponent is SELECTED
    text = ATTENTION.format(
        element="i1" if selects else "f32",
        exponent=exponent.format(hidden=hidden),
        output=output,
    )
    seen = seen_keys()
    prepared = prepare(graph_in(parse_ir(text)))
    program = schedule(prepared, Configuration({"M": 32}, {"L": TILE}))
    require_right(
        program.source(fast_math=False),
        prepared.graph,
        random_inputs(seen if selects else added_bias(seen, hidden)),
        tmp_path,
    )


@pytest.mark.parametrize("hidden", ["-inf", "-1.0e30", "-1.0e9"])
def test_rows_hidden_in_whole_parts(
    parse_ir: ParseIR, cleave_opt: CleaveOpt, hidden: str, tmp_path: Path
):
    emitted = cleave_opt(SPLIT, "-p", ",".join(SPLIT_PASSES), "-t", "tilelang")
    assert emitted.returncode == 0, emitted.stderr
    safe = cleave_opt(SPLIT, "-p", "stabilize-exp").stdout
    inputs = random_inputs(added_bias(seen_keys(), hidden))
    require_right(emitted.stdout, graph_in(parse_ir(safe)), inputs, tmp_path)


@pytest.mark.parametrize("mask", ["causal diagonal 31", "window diagonal 63 size 20"])
def test_masks_that_hide_whole_parts(
    parse_ir: ParseIR, cleave_opt: CleaveOpt, mask: str, tmp_path: Path
):
    """And leave others whole, whose tiles then have no code for them."""
    text = SPLIT.replace(
        "%e = algebra.add %scaled, %xs",
        f"""%mask = algebra.{mask} : !algebra.tensor<[M, L], i1>
  %seen = algebra.split %mask dim 1 count s
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %biased = algebra.add %scaled, %xs
  %e = algebra.select %seen, %biased, %hidden""",
    )
    emitted = cleave_opt(text, "-p", ",".join(SPLIT_PASSES), "-t", "tilelang")
    assert emitted.returncode == 0, emitted.stderr
    assert re.search(r"if .* <= 0.*:\n.*\n.*T.Select", emitted.stdout)
    safe = cleave_opt(text, "-p", "stabilize-exp").stdout
    inputs = random_inputs(added_bias(np.ones_like(seen_keys()), "0"))
    require_right(emitted.stdout, graph_in(parse_ir(safe)), inputs, tmp_path)


def test_the_gate_finds_exponents_that_are_multiplied_first(
    parse_ir: ParseIR, tmp_path: Path
):
    text = ATTENTION.format(element="f16", exponent=ADDED, output=ONE_LOOP)
    graph = graph_in(parse_ir(text))
    program = schedule(prepare(graph), Configuration({"M": 32}, {"L": TILE}))
    source = program.source(fast_math=False)
    file = tmp_path / "module.py"

    def run(*inputs: Array) -> list[Array]:
        return execute_module(load_generated(file), inputs, {})

    gate = NumericalGate(graph)
    file.write_text(source)
    report = gate.try_run(run)
    assert report.reasons == []
    hidden = {f.family for f in report.families if f.family.startswith("%x infinite")}
    assert "%x infinite, some rows hidden" in hidden

    log2_e = "1.4426950408889634"
    subtracted = f"exp2((r[i] - r_3[i]) * {log2_e})"
    assert subtracted in source
    multiplied = f"exp2(r[i] * {log2_e} - r_3[i] * {log2_e})"
    file.write_text(source.replace(subtracted, multiplied))
    rejected = {reason.split(":")[0] for reason in gate.try_run(run).reasons}
    assert "%x infinite, some rows hidden" in rejected
    assert rejected <= hidden
