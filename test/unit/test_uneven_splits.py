"""Splits by counts that do not divide compute what the whole does, also in tiles."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate
from cleave.dialects.itgraph import LoopOp, PlanOp
from cleave.lowering.cuda import build, lower
from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_itgraph import Order, execute_plan
from cleave.lowering.toolchain import find_nvcc
from cleave.passes.partitioning.composition import compose
from cleave.passes.uneven_splits import UnevenSplit, chunk_of, with_chunks

Array = NDArray[Any]
ParseIR = Callable[[str], ModuleOp]
CleaveOpt = Callable[..., CompletedProcess[str]]

# 103 keys in 4 parts of 32: the last has 7.
SIZES = {"H": 2, "M": 16, "L": 103, "D": 8, "s": 4, "C": 32}

ATTENTION = """
    algebra.graph @attention [H, M, L, D, s] where [s | L]
        (%q: !algebra.tensor<[H, M, D], f32>, %k: !algebra.tensor<[H, L, D], f32>,
         %v: !algebra.tensor<[H, L, D], f32>)
        -> (!algebra.tensor<[1, H, M, D], f32>, !algebra.tensor<[1, H, M, 1], f32>) {
      %ks = algebra.split %k dim 1 count s
      %vs = algebra.split %v dim 1 count s
      %x = algebra.matmul %q, %ks transpose_rhs
      %p = algebra.exp %x
      %ls = algebra.reduce_sum %p dim 3
      %as = algebra.matmul %p, %vs
      %l = algebra.reduce_sum %ls dim 0
      %a = algebra.reduce_sum %as dim 0
      %o = algebra.div %a, %l
      %lse = algebra.log %l
      algebra.return %o, %lse
    }"""

CAUSAL = ATTENTION.replace(
    "%p = algebra.exp %x",
    """%hidden = algebra.constant -inf : !algebra.tensor<[], f32>
      %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
      %parts = algebra.split %mask dim 1 count s
      %seen = algebra.reshape %parts to [s, 1, M, L floordiv s]
      %y = algebra.select %seen, %x, %hidden
      %p = algebra.exp %y""",
)

MATMUL = """
    algebra.graph @matmul [M, D, L, s] where [s | L]
        (%x: !algebra.tensor<[M, L], f32>, %w: !algebra.tensor<[L, D], f32>)
        -> (!algebra.tensor<[1, M, D], f32>) {
      %xs = algebra.split %x dim 1 count s
      %ws = algebra.split %w dim 0 count s
      %p = algebra.matmul %xs, %ws
      %y = algebra.reduce_sum %p dim 0
      algebra.return %y
    }"""

# The sum may keep the zeros beyond the end, the maximum may not.
STATISTICS = """
    algebra.graph @statistics [M, L, s] where [s | L]
        (%x: !algebra.tensor<[M, L], f32>)
        -> (!algebra.tensor<[1, M, 1], f32>, !algebra.tensor<[1, M, 1], f32>) {
      %xs = algebra.split %x dim 1 count s
      %ms = algebra.reduce_max %xs dim 2
      %ls = algebra.reduce_sum %xs dim 2
      %m = algebra.reduce_max %ms dim 0
      %l = algebra.reduce_sum %ls dim 0
      algebra.return %m, %l
    }"""

SPLIT = UnevenSplit("L", "s", "C")


def graph_in(module: ModuleOp) -> GraphOp:
    (graph,) = (op for op in module.ops if isinstance(op, GraphOp))
    return graph


def in_chunks(parse_ir: ParseIR, text: str) -> GraphOp:
    """The graph in chunks, with sizes as facts."""
    graph = with_chunks(graph_in(parse_ir(text)), SPLIT)
    sizes = ", ".join(f"{name} = {SIZES[name]}" for name in graph.symbol_names)
    return graph_in(parse_ir(str(graph).replace("]\n", f"] where [{sizes}]\n", 1)))


def random_inputs(graph: GraphOp) -> list[Array]:
    generator = np.random.default_rng(3)
    return [
        generator.standard_normal(
            [SIZES[str(dim)] for dim in type_.dims], dtype=np.float32
        )
        for type_ in graph.input_types
    ]


GRAPHS = pytest.mark.parametrize(
    "text", [ATTENTION, CAUSAL, MATMUL], ids=["attention", "causal", "matmul"]
)


def whole_results(graph: GraphOp, inputs: Sequence[Array]) -> list[Array]:
    """What the graph computes in one part, which divides every dim."""
    return execute_graph(graph, inputs, {**SIZES, "s": 1})


@pytest.mark.parametrize("text", [ATTENTION, CAUSAL, MATMUL, STATISTICS])
def test_chunks_compute_what_one_part_does(parse_ir: ParseIR, text: str):
    graph = in_chunks(parse_ir, text)
    graph.verify()
    inputs = random_inputs(graph)
    expected = whole_results(graph_in(parse_ir(text)), inputs)
    for result, array in zip(execute_graph(graph, inputs), expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-9, atol=1e-9)


def test_only_what_needs_a_mask_has_one(parse_ir: ParseIR):
    assert "algebra.within" not in str(in_chunks(parse_ir, MATMUL))
    # One selection for all that reads an exponent, one in front of the maximum only.
    for text in (ATTENTION, STATISTICS):
        assert str(in_chunks(parse_ir, text)).count("algebra.select") == 1


def test_parts_of_a_chunk_are_none_empty():
    assert chunk_of(4099, 4) == 1152
    # 128 would leave the last of 3 parts with nothing.
    assert chunk_of(170, 3) == 64
    assert chunk_of(130, 4) is None


def test_a_part_in_two_dims_is_refused(parse_ir: ParseIR):
    graph = graph_in(
        parse_ir("""
            algebra.graph @gram [M, L, s] where [s | L]
                (%x: !algebra.tensor<[M, L], f32>)
                -> (!algebra.tensor<[s, 1, 1], f32>) {
              %xs = algebra.split %x dim 1 count s
              %g = algebra.matmul %xs, %xs transpose_lhs
              %l = algebra.reduce_sum %g dim 1
              %y = algebra.reduce_sum %l dim 2
              algebra.return %y
            }""")
    )
    with pytest.raises(VerifyException, match="has parts of L in two dims"):
        with_chunks(graph, SPLIT)


def test_a_length_of_parts_that_is_computed_with_is_dropped(
    cleave_opt: CleaveOpt,
):
    result = cleave_opt(
        """
        algebra.graph @rowsum [M, L] where [M = 4, L = 310]
            (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
          %y = algebra.reduce_sum %x dim 1
          algebra.return %y
        }
        algebra.graph @wrong [M, L, s] where [M = 4, L = 310, s | L]
            (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>)
            attributes {equals = @rowsum} {
          %xs = algebra.split %x dim 1 count s
          %ls = algebra.reduce_sum %xs dim 2
          %n = algebra.constant L floordiv s : !algebra.tensor<[], f32>
          %means = algebra.div %ls, %n
          %mean = algebra.reduce_sum %means dim 0
          %y = algebra.mul %mean, %n
          %wide = algebra.mul %y, %n
          %z = algebra.div %wide, %n
          %o = algebra.add %z, %n
          %r = algebra.reshape %o to [M, 1]
          algebra.return %r
        }""",
        "-p",
        "specialize{counts=3}",
    )
    assert "graph @wrong_s3 is dropped: it does not equal @rowsum" in result.stderr
    assert "@wrong" not in result.stdout


# Through the passes


def plans_of(
    cleave_opt: CleaveOpt, parse_ir: ParseIR, graph: GraphOp, tile: int = 8
) -> list[PlanOp]:
    """Plans of the kernels of a graph, in tiles of so many positions of a part."""
    name = graph.graph_name
    blocks = "M=16 H=1" if name == "attention" else "M=16"
    kernels = [f"{name}_split", f"{name}_combine"]
    steps = ["stabilize-exp", "partition-split", "insert-casts"]
    steps += [
        f'schedule-blocks{{tile="{blocks}" only={kernels[0]}}}',
        f'schedule-blocks{{tile="M=16" only={kernels[1]}}}',
        f'schedule-reductions{{tile="C={tile}" only={kernels[0]}}}',
        "schedule-masks",
    ]
    result = cleave_opt(str(graph), "-p", ",".join(steps))
    assert result.returncode == 0, result.stderr
    return [op for op in parse_ir(result.stdout).ops if isinstance(op, PlanOp)]


@GRAPHS
@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_tiles_compute_what_one_part_does(
    parse_ir: ParseIR, cleave_opt: CleaveOpt, text: str, order: Order
):
    graph = in_chunks(parse_ir, text)
    inputs = random_inputs(graph)
    plans = plans_of(cleave_opt, parse_ir, graph)
    results = execute_plan(compose(plans), inputs, order=order, strict=True)
    expected = whole_results(graph_in(parse_ir(text)), inputs)
    assert len(results) == len(expected)
    for result, array in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-5)


@GRAPHS
@pytest.mark.parametrize("tile", [24, 64])
def test_tiles_need_not_divide_the_chunk(
    parse_ir: ParseIR, cleave_opt: CleaveOpt, text: str, tile: int
):
    graph = in_chunks(parse_ir, text)
    inputs = random_inputs(graph)
    plans = plans_of(cleave_opt, parse_ir, graph, tile)
    # The last tile of a part shows poison behind its end, which has to be masked.
    results = execute_plan(compose(plans), inputs)
    expected = whole_results(graph_in(parse_ir(text)), inputs)
    for result, array in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-5)


@GRAPHS
def test_loops_end_with_the_dim(parse_ir: ParseIR, cleave_opt: CleaveOpt, text: str):
    plan, _ = plans_of(cleave_opt, parse_ir, in_chunks(parse_ir, text))
    for loop in (op for op in plan.walk() if isinstance(op, LoopOp)):
        counts = [
            evaluate(loop.range.hi, {**SIZES, "BM": 16, "BC": 8, "i_s": part})
            for part in range(4)
        ]
        assert counts == [4, 4, 4, 1]


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_attention_over_a_prime_number_of_keys_is_a_legal_cubin(
    cleave_opt: CleaveOpt, tmp_path: Path
):
    pytest.importorskip("tilelang")
    text = """
        algebra.graph @attention [H, M, L, D]
            where [H = 8, M = 64, L = 4099, D = 128]
            (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
             %v: !algebra.tensor<[H, L, D], f16>)
            -> (!algebra.tensor<[H, M, D], f16>) {
          %s = algebra.matmul %q, %k transpose_rhs
          %p = algebra.exp %s
          %l = algebra.reduce_sum %p dim 2
          %n = algebra.div %p, %l
          %o = algebra.matmul %n, %v
          algebra.return %o
        }"""
    found = cleave_opt(
        text,
        "-p",
        "superoptimize{split=inputs},specialize{counts=4},"
        "stabilize-exp,partition-split,insert-casts",
    )
    assert found.returncode == 0, found.stderr
    (name,) = re.findall(r"graph @(\w+_s4_split) ", found.stdout)
    start = found.stdout.index(f"  algebra.graph @{name} ")
    graph = found.stdout[start : found.stdout.index("\n  }\n", start) + 5]
    emitted = cleave_opt(
        graph,
        "-p",
        'schedule-blocks{tile="M=64 H=1"},schedule-reductions{tile="C=64"},'
        "schedule-masks,plan-memory",
        "-t",
        "tilelang",
    )
    assert emitted.returncode == 0, emitted.stderr
    file = tmp_path / "kernel.py"
    file.write_text(emitted.stdout)

    hardware = load_hardware("h200")
    built = build(load_generated(file), hardware.arch, tmp_path / "build")
    assert built.legality(hardware) == []
    (kernel,) = built.kernels
    for report in kernel.reports:
        assert (report.spill_store_bytes, report.spill_load_bytes) == (0, 0)
        assert report.instructions["wgmma"] > 0


@pytest.mark.parametrize("specialization", ["single-loop", "none"])
def test_tilelang_takes_a_pipeline_whose_steps_depend_on_the_part(
    cleave_opt: CleaveOpt, parse_ir: ParseIR, tmp_path: Path, specialization: str
):
    """Rows of 102 halves are nothing for TMA: threads wait for the last copies."""
    pytest.importorskip("tilelang")
    parts = """
        algebra.graph @parts [M, L, s] where [s | L] (%x: !algebra.tensor<[M, L], f16>)
            -> (!algebra.tensor<[s, M, 1], f32>) {
          %xs = algebra.split %x dim 1 count s
          %ls = algebra.reduce_sum %xs dim 2
          algebra.return %ls
        }"""
    emitted = cleave_opt(
        str(in_chunks(parse_ir, parts)).replace("L = 103", "L = 102"),
        "-p",
        'insert-casts,schedule-blocks{tile="M=16"},schedule-reductions{tile="C=8"},'
        "schedule-masks,"
        f"plan-memory{{threads=128 stages=3 specialization={specialization}}}",
        "-t",
        "tilelang",
    )
    assert emitted.returncode == 0, emitted.stderr
    assert re.search(r"T\.Pipelined\(\s*T\.min\(", emitted.stdout)
    file = tmp_path / "kernel.py"
    file.write_text(emitted.stdout)
    lower(load_generated(file), load_hardware("h200").arch)


COLUMNS = """
    algebra.graph @columns [L, N, s] where [s | L] (%x: !algebra.tensor<[L, N], f16>)
        -> (!algebra.tensor<[s, 1, N], f32>) {
      %xs = algebra.split %x dim 0 count s
      %ls = algebra.reduce_sum %xs dim 1
      algebra.return %ls
    }"""


@pytest.mark.parametrize(("row", "loop"), [(102, "T.Pipelined("), (103, "T.serial(")])
def test_rows_that_begin_between_words_are_loaded_without_a_pipeline(
    cleave_opt: CleaveOpt, parse_ir: ParseIR, row: int, loop: str
):
    """
    Also where a level around the loop sees a part of them: TileLang would unroll the
    copies of all stages, element by element, for minutes.
    """
    graph = with_chunks(graph_in(parse_ir(COLUMNS)), SPLIT)
    sizes = f"where [L = 4099, N = {row}, s = 4, C = 1152]"
    emitted = cleave_opt(
        str(graph).replace("]\n", f"] {sizes}\n", 1),
        "-p",
        'insert-casts,schedule-blocks{tile="s=1 N=64"},'
        'schedule-reductions{tile="C=64"},schedule-masks,'
        "plan-memory{threads=128 stages=3 specialization=single-loop}",
        "-t",
        "tilelang",
    )
    assert emitted.returncode == 0, emitted.stderr
    (found,) = re.findall(r"for i_C\w* in (T\.\w+\()", emitted.stdout)
    assert found == loop


@pytest.mark.parametrize(("count", "in_bulk"), [(25, True), (32, False)])
def test_parts_that_begin_between_16_bytes_are_not_loaded_in_bulk(
    cleave_opt: CleaveOpt, count: int, in_bulk: bool
):
    """A GPU stops at TMA for parts of 3125 halves, and takes those of 4000."""
    graph = f"""
        algebra.graph @parts [M, L, s] where [M = 2, L = 100000, s = {count}, s | L]
            (%x: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[s, M, 1], f32>) {{
          %xs = algebra.split %x dim 1 count s
          %ls = algebra.reduce_sum %xs dim 2
          algebra.return %ls
        }}"""
    emitted = cleave_opt(
        graph,
        "-p",
        'insert-casts,schedule-blocks{tile="M=1 s=1"},'
        'schedule-reductions{tile="L=1024"},schedule-masks,'
        "plan-memory{threads=128 stages=3}",
        "-t",
        "tilelang",
    )
    assert emitted.returncode == 0, emitted.stderr
    assert ("disable_tma=True" not in emitted.stdout) == in_bulk
