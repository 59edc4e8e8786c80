"""Masks as tensors: read from GMEM, computed, handed on and returned."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.accuracy import DRAWINGS, relative_error
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import prepare, schedule
from cleave.lowering.compilation.reference import results_of
from cleave.lowering.compilation.tile_check import check_tiles, draw
from cleave.lowering.cuda import build, lower
from cleave.lowering.generated import GeneratedModule, load_generated
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_modules import execute_module
from cleave.lowering.toolchain import find_nvcc

Parse = Callable[[str], ModuleOp]

PLAIN = "%s = algebra.select %mask, %scaled, %low"
CAUSAL = """%seen = algebra.select %mask, %scaled, %low
  %causal = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s = algebra.select %causal, %seen, %low"""
ALIBI = """%row = algebra.iota dim 0 : !algebra.tensor<[M, L], i32>
  %column = algebra.iota dim 1 : !algebra.tensor<[M, L], i32>
  %down = algebra.cast %row to f32
  %along = algebra.cast %column to f32
  %distance = algebra.sub %along, %down
  %bias = algebra.mul %distance, %scale
  %biased = algebra.add %scaled, %bias
  %s = algebra.select %mask, %biased, %low"""


def attention(scores: str, sizes: str, mask: str = "M, L") -> str:
    """Masked attention that returns the logarithms of its sums as well."""
    return f"""
algebra.graph @masked [M, L, D] where [{sizes}]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %mask: !algebra.tensor<[{mask}], i1>)
    -> (!algebra.tensor<[M, D], f16>, !algebra.tensor<[M, 1], f32>) {{
  %low = algebra.constant -inf : !algebra.tensor<[], f32>
  %scale = algebra.constant 0.125 : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  %scaled = algebra.mul %qk, %scale
  {scores}
  %m = algebra.reduce_max %s dim 1
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  %log = algebra.log %l
  %lse = algebra.add %m, %log
  algebra.return %o, %lse
}}"""


# A mask from a generator, of a tensor, and of integers; numbers of masks; each of these
# in a loop of its own, where TileLang would make the widest vectors of it.
ELEMENTWISE = """
algebra.graph @masks [M, N] where [M = 21, N = 96]
    (%x: !algebra.tensor<[M, N], f16>, %mask: !algebra.tensor<[M, N], i1>,
     %count: !algebra.tensor<[M, N], i32>)
    -> (!algebra.tensor<[M, N], i1>, !algebra.tensor<[N, M], i1>,
        !algebra.tensor<[M, N], i1>, !algebra.tensor<[M, N], f16>,
        !algebra.tensor<[M, N], f16>, !algebra.tensor<[M, N], f32>) {
  %causal = algebra.causal diagonal 3 : !algebra.tensor<[M, N], i1>
  %turned = algebra.transpose %mask permutation [1, 0]
  %some = algebra.cast %count to i1
  %ones = algebra.cast %causal to f16
  %shown = algebra.cast %mask to f16
  %y = algebra.select %some, %x, %ones
  algebra.return %causal, %turned, %some, %ones, %shown, %y
}"""


def graph_in(module: ModuleOp) -> GraphOp:
    return cast(GraphOp, module.body.block.first_op)


def emitted(graph: GraphOp, chosen: Configuration, folder: Path) -> GeneratedModule:
    path = folder / "module.py"
    program = schedule(prepare(graph), chosen)
    path.write_text(program.source(fast_math=False), encoding="utf-8")
    return load_generated(path)


def errors(graph: GraphOp, module: GeneratedModule) -> list[float]:
    """Of each result of the emitted text, the largest beside float64."""
    sizes = module.plan.sizes
    inputs = [
        draw(type_, sizes, DRAWINGS[0], seed)
        for seed, type_ in enumerate(graph.input_types)
    ]
    inputs = [a.astype("float16") if a.dtype.kind == "f" else a for a in inputs]
    with np.errstate(all="ignore"):
        exact = results_of(np, graph, lambda each: execute_graph(each, inputs, sizes))
    results = execute_module(module, inputs, sizes)
    found: list[float] = []
    for result, reference in zip(results, exact, strict=True):
        assert (result.dtype == bool) == (reference.dtype == bool)
        error, wrong = relative_error(np, result.astype(float), reference.astype(float))
        assert wrong == 0
        found.append(error)
    return found


@pytest.mark.parametrize(
    ("scores", "sizes", "mask"),
    [
        (PLAIN, "M = 64, L = 64, D = 16", "M, L"),
        (PLAIN, "M = 35, L = 43, D = 16", "M, L"),
        (PLAIN, "M = 35, L = 43, D = 16", "1, L"),
        (CAUSAL, "M = 35, L = 43, D = 16", "M, L"),
        (ALIBI, "M = 35, L = 43, D = 16", "M, L"),
    ],
)
def test_attention_with_a_mask_as_a_tensor(
    scores: str, sizes: str, mask: str, parse_ir: Parse, tmp_path: Path
) -> None:
    graph = graph_in(parse_ir(attention(scores, sizes, mask)))
    module = emitted(graph, Configuration({"M": 16}, {"L": 16}), tmp_path)
    assert f'mask: T.Tensor(({mask}), "int8")'.replace("(1, L)", "(L,)") in module.text
    assert module.plan.args[3].dtype == "bool"
    out, lse = errors(graph, module)
    assert out < 2e-3
    assert lse < 1e-5


def test_masks_are_computed_turned_and_returned(
    parse_ir: Parse, tmp_path: Path
) -> None:
    graph = graph_in(parse_ir(ELEMENTWISE))
    module = emitted(graph, Configuration({"M": 8}, {}), tmp_path)
    assert errors(graph, module) == [0.0] * 6


def test_masks_become_no_wider_vectors_than_there_are(
    parse_ir: Parse, tmp_path: Path
) -> None:
    pytest.importorskip("tilelang")
    text = ELEMENTWISE.replace("M = 21, N = 96", "M = 64, N = 256")
    module = emitted(
        graph_in(parse_ir(text)), Configuration({"M": 16}, {}, threads=256), tmp_path
    )
    (kernel,) = lower(module, "sm_90a")
    assert "signed char* __restrict__ mask" in kernel.cuda


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_masked_attention_to_a_cubin(parse_ir: Parse, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    text = attention(PLAIN, "M = 1024, L = 1024, D = 64")
    chosen = Configuration({"M": 64}, {"L": 64}, stages=2)
    module = emitted(graph_in(parse_ir(text)), chosen, tmp_path)
    built = build(module, "sm_90a", tmp_path / "built")
    (report,) = built.kernels[0].reports
    assert report.instructions["wgmma"] > 0
    # Rows of a multiple of 16 bytes: TMA loads the mask as well.
    cuda = (built.folder / "kernel_0.cu").read_text(encoding="utf-8")
    assert "mask_desc" in cuda


def test_rows_that_two_masks_hide_together_are_right(parse_ir: Parse) -> None:
    """The first row sees one column, which half of all masks hide."""
    graph = graph_in(parse_ir(attention(CAUSAL, "M = 64, L = 64, D = 16")))
    program = schedule(prepare(graph), Configuration({"M": 16}, {"L": 16}))
    check = check_tiles(graph, program)
    assert check.reasons == []
    assert check.drawing == DRAWINGS[0]
