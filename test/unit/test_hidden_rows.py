"""
Rows that see nothing in whole tiles or parts, executed from the TileLang text.

Their exponents are differences of equal huge numbers, which have to be 0.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import prepare, schedule
from cleave.lowering.generated import load_generated
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_modules import execute_module

Array = NDArray[Any]
ParseIR = Callable[[str], ModuleOp]

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
SELECTED = """%scaled = algebra.mul %qk, %scale
  %hidden = algebra.constant {hidden} : !algebra.tensor<[], f32>
  %s = algebra.select %x, %scaled, %hidden"""
ONE_LOOP = """%a = algebra.matmul %p, %v
  %o = algebra.div %a, %l"""
TWO_LOOPS = """%n = algebra.div %p, %l
  %o = algebra.matmul %n, %v"""


def seen_keys() -> Array:
    """Which keys a row sees: all but the first, the last, some, all tiles but one."""
    seen = np.random.default_rng(1).random((SIZES["M"], SIZES["L"])) < 0.7
    seen[0:6, : 2 * TILE] = False
    seen[6:12, 3 * TILE :] = False
    seen[12:18, TILE : 5 * TILE] = False
    seen[18:20] = False
    return seen


def random_inputs(x: Array) -> list[Array]:
    rng = np.random.default_rng(2)
    dims = ("M", "L", "L")
    q, k, v = (rng.standard_normal((SIZES[dim], SIZES["D"])) for dim in dims)
    return [array.astype(np.float16) for array in (q, k, v)] + [x]


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
    [ADDED, SELECTED],
    ids=["added", "selected"],
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
    graph = parse_ir(text).body.block.first_op
    assert isinstance(graph, GraphOp)
    graph.verify()
    seen = seen_keys()
    bias = np.random.default_rng(3).standard_normal(seen.shape)
    bias = np.where(seen, bias, float(hidden)).astype(np.float32)
    prepared = prepare(graph)
    program = schedule(prepared, Configuration({"M": 32}, {"L": TILE}))
    require_right(
        program.source(fast_math=False),
        prepared.graph,
        random_inputs(seen if selects else bias),
        tmp_path,
    )
