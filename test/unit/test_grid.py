"""The order in which threadblocks start: the longest first, as far as L2 allows it."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph import KernelOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import TileProgram, prepare, schedule
from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import hardware_for_arch
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_language import Language
from cleave.lowering.numpy_modules import execute_module
from cleave.lowering.tilelang.buffers import Spelling
from cleave.lowering.tilelang.forms import grid as grids
from cleave.lowering.tilelang.forms.grid import grid_of
from cleave.lowering.tilelang.text import Names
from cleave.passes.cost.traffic import KEPT_SHARE

ParseIR = Callable[[str], ModuleOp]
Position = tuple[int, int, int]

CAUSAL = """
algebra.graph @sums [N, G, M, L] where [N = 4, G = 3, M = 100, L = 96]
    (%q: !algebra.tensor<[N, G, M, 1], f32>, %k: !algebra.tensor<[N, 1, 1, L], f32>)
    -> (!algebra.tensor<[N, G, M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %seen = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %x = algebra.mul %q, %k
  %y = algebra.select %seen, %x, %zero
  %o = algebra.reduce_sum %y dim 3
  algebra.return %o
}"""
SHARED = 4 * 96 * 4
"""Bytes of %k, which threadblocks read whatever their rows are."""


def graph_in(parse_ir: ParseIR, text: str) -> GraphOp:
    graph = parse_ir(text).body.block.first_op
    assert isinstance(graph, GraphOp)
    graph.verify()
    return graph


def program_of(graph: GraphOp) -> TileProgram:
    tile = {"N": 1, "G": 1, "M": 32}
    return schedule(prepare(graph), Configuration(tile, {"L": 16}))


def starts(program: TileProgram, l2_bytes: float) -> list[Position]:
    """(N, G, M) of every threadblock, in the order in which they start."""
    (kernel,) = (op for op in program.plan.walk() if isinstance(op, KernelOp))
    sizes = {"N": 4, "G": 3, "M": 100, "L": 96, "BM": 32, "BL": 16}
    iterators = {range_.iterator: range_.iterator for range_ in kernel.ranges}
    spelling = Spelling(program.plan.facts, {n: n for n in sizes}, iterators)
    grid = grid_of(kernel, spelling, Names(), round(l2_bytes))
    known: dict[str, Any] = {"T": Language(sizes), **sizes}
    found: list[Position] = []
    for block in np.ndindex(*(eval(extent, known) for extent in grid.extents)):
        values = dict(zip(grid.names, block, strict=True))
        for line in grid.decode:
            exec(line, known, values)
        found.append((values["i_N"], values["i_G"], values["i_M"]))
    return found


def in_groups(size: int) -> list[Position]:
    """The longest first in groups of so many pairs of N and G."""
    pairs = [*product(range(4), range(3))]
    groups = [pairs[first : first + size] for first in range(0, 12, size)]
    return [(*pair, m) for group in groups for m in (3, 2, 1, 0) for pair in group]


@pytest.mark.parametrize(
    ("kept", "size"), [(1, 12), (0.9, 6), (0.5, 6), (0.49, 4), (0.1, 1), (0, 1)]
)
def test_the_longest_start_first_as_far_as_l2_holds_what_they_share(
    parse_ir: ParseIR, kept: float, size: int
):
    program = program_of(graph_in(parse_ir, CAUSAL))
    assert starts(program, kept * SHARED / KEPT_SHARE) == in_groups(size)


def test_threadblocks_of_one_length_start_in_row_major_order(parse_ir: ParseIR):
    text = CAUSAL.replace("causal diagonal L - M", "causal diagonal L")
    program = program_of(graph_in(parse_ir, text))
    assert starts(program, SHARED) == [*product(range(4), range(3), range(4))]


@pytest.mark.parametrize("kept", [1.0, 0.5, 0.0])
def test_every_tile_is_computed(
    parse_ir: ParseIR, kept: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    graph = graph_in(parse_ir, CAUSAL)
    share = kept * SHARED / hardware_for_arch("sm_90a").l2_bytes
    monkeypatch.setattr(grids, "KEPT_SHARE", share)
    file = tmp_path / "module.py"
    file.write_text(program_of(graph).source(fast_math=False))
    assert ("group" in file.read_text()) == (kept == 0.5)
    rng = np.random.default_rng(0)
    shapes = [(4, 3, 100, 1), (4, 1, 1, 96)]
    inputs = [rng.standard_normal(shape, np.float32) for shape in shapes]
    (result,) = execute_module(load_generated(file), inputs, {})
    (expected,) = execute_graph(graph, inputs)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
