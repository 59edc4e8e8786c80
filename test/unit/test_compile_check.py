"""The check without a GPU: small sizes that keep what programs rely on, and errors."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.elementwise import Exp, Exp2
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.operators import Tail
from cleave.lowering.compilation.accuracy import (
    DRAWINGS,
    Drawing,
    NumericCheck,
    allowed_error,
    is_usable,
    relative_error,
)
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import TileProgram, prepare, schedule
from cleave.lowering.compilation.reduced_sizes import (
    GraphSizes,
    NoSizesError,
    reduced_sizes,
    sizes_with_tails,
)
from cleave.lowering.compilation.tile_check import check_tiles, draw
from cleave.lowering.numpy_algebra import ExecutionError, Precision, execute_graph

EXAMPLES = Path(__file__).parents[2] / "examples"
ATTENTION = Configuration({"H": 1, "M": 64}, {"L": 64})

SPLIT = """
algebra.graph @split [M, K, s] where [{facts}]
    (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, 1], f32>) {{
  %p = algebra.split %x dim 1 count s
  %l = algebra.reduce_sum %p dim 2
  %o = algebra.reduce_sum %l dim 0
  %v = algebra.reshape %o to [M, 1]
  algebra.return %v
}}"""

EXPONENTIALS = """
algebra.graph @exponentials [M, N] where [{facts}]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, 1], f32>) {{
  %e = algebra.{function} %x
  %s = algebra.reduce_sum %e dim 1
  algebra.return %s
}}"""

ENTROPY = """
algebra.graph @entropy [M, L, D] where [M = 64, L = 107, D = 32]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %ps = algebra.mul %p, %s
  %e = algebra.reduce_sum %ps dim 1
  %mean = algebra.div %e, %l
  algebra.return %mean
}"""

Parse = Callable[[str], ModuleOp]


def graph_in(module: ModuleOp) -> GraphOp:
    module.verify()
    (graph,) = module.ops
    assert isinstance(graph, GraphOp)
    graph.detach()
    return graph


def example(name: str, parse: Parse, **sizes: int) -> GraphOp:
    text = (EXAMPLES / f"{name}.mlir").read_text()
    for symbol, size in sizes.items():
        text = re.sub(rf"\b{symbol} = \d+", f"{symbol} = {size}", text)
    return graph_in(parse(text))


def scheduled(graph: GraphOp, chosen: Configuration) -> TileProgram:
    return schedule(prepare(graph), chosen)


# Sizes


def test_sizes_are_small_but_keep_full_tiles(parse_ir: Parse) -> None:
    graph = example("attention_fig5a", parse_ir)
    assert reduced_sizes(graph, ATTENTION) == {"H": 2, "M": 128, "L": 128, "D": 32}


def test_sizes_keep_tails_where_there_are_some(parse_ir: Parse) -> None:
    graph = example("attention_fig5a", parse_ir, M=1000, L=1001)
    sizes = reduced_sizes(graph, ATTENTION)
    assert sizes["M"] > 64
    assert sizes["L"] > 64
    assert sizes["M"] % 64
    assert sizes["L"] % 64


def test_a_dim_smaller_than_its_tile_stays(parse_ir: Parse) -> None:
    graph = example("attention_fig5a", parse_ir, M=16, H=1)
    sizes = reduced_sizes(graph, ATTENTION)
    assert (sizes["M"], sizes["H"]) == (16, 1)


def test_the_diagonal_of_a_mask_keeps_its_sign(parse_ir: Parse) -> None:
    equal = reduced_sizes(example("attention_causal_lse", parse_ir), ATTENTION)
    assert equal["L"] == equal["M"] == 128
    longer = example("attention_causal_lse", parse_ir, M=1024)
    sizes = reduced_sizes(longer, ATTENTION)
    assert sizes["L"] > sizes["M"] == 128


def test_a_window_keeps_beginning_behind_the_first_key(parse_ir: Parse) -> None:
    graph = example("attention_window", parse_ir, M=203, L=799)
    sizes = reduced_sizes(graph, Configuration({"H": 1, "M": 128}, {"L": 64}))
    assert 128 < sizes["L"] - sizes["M"] < 799 - 203
    program = scheduled(graph, Configuration({"H": 1, "M": 128}, {"L": 64}))
    assert check_tiles(graph, program).reasons == []


def test_facts_hold_and_parts_of_a_split_keep_their_loops(parse_ir: Parse) -> None:
    graph = graph_in(parse_ir(SPLIT.format(facts="s | K, K = 4096, s = 4")))
    sizes = reduced_sizes(graph, Configuration({}, {"K": 64}))
    assert sizes == {"M": 32, "K": 512, "s": 4}


def test_derived_sizes_follow(parse_ir: Parse) -> None:
    text = EXPONENTIALS.format(facts="M = 512, N = 2 * M", function="exp")
    graph = graph_in(parse_ir(text))
    assert GraphSizes.of(graph).sizes == {"M": 512, "N": 1024}
    sizes = reduced_sizes(graph, Configuration({"M": 16}, {"N": 64}))
    assert sizes == {"M": 64, "N": 128}


def test_dynamic_dims_get_sizes_that_fulfil_the_facts(parse_ir: Parse) -> None:
    def sizes(facts: str) -> Mapping[str, int]:
        text = EXPONENTIALS.format(facts=facts, function="exp")
        return GraphSizes.of(graph_in(parse_ir(text))).sizes

    assert sizes("N = 64") == {"M": 521, "N": 64}
    assert sizes("N = 64, 8 | M") == {"M": 520, "N": 64}
    with pytest.raises(NoSizesError, match="dynamic dims of @exponentials"):
        sizes("N = 64, 127 | M")


def test_sizes_with_tails_have_one_in_every_tile(parse_ir: Parse) -> None:
    graph = example("attention_fig5a", parse_ir)
    sizes = sizes_with_tails(graph, ATTENTION)
    assert sizes == {"H": 2, "M": 85, "L": 85, "D": 32}


# The check


@pytest.mark.parametrize("name", ["attention_fig5a", "mha", "attention_causal_lse"])
def test_a_right_program_passes(name: str, parse_ir: Parse) -> None:
    graph = example(name, parse_ir)
    check = check_tiles(graph, scheduled(graph, ATTENTION))
    assert check.reasons == []
    assert check.method == "numpy-tiles"
    # The rounding of P and of the result, and far from none at all.
    assert 1e-4 < check.max_error < 5e-4 < check.max_allowed < 2e-3


def test_a_score_beside_its_exponential_has_a_tail_of_zeros(parse_ir: Parse) -> None:
    """Where the exponential is 0 beyond the end, -inf times it would be NaN."""
    graph = graph_in(parse_ir(ENTROPY))
    program = scheduled(graph, Configuration({"M": 64}, {"L": 16}))
    assert check_tiles(graph, program).reasons == []


def test_a_wrong_program_is_found(parse_ir: Parse) -> None:
    graph = example("attention_fig5a", parse_ir)
    program = scheduled(graph, ATTENTION)
    for op in list(program.plan.walk()):
        if isinstance(op, Exp):
            Rewriter.replace_op(op, Exp2(op.source))
    check = check_tiles(graph, program)
    assert check.reasons[0].startswith("result 0, in float64: relative error 0.")


def test_a_tail_that_is_not_masked_is_found(parse_ir: Parse) -> None:
    text = EXPONENTIALS.format(facts="M = 512, N = 1000", function="exp")
    graph = graph_in(parse_ir(text))
    program = scheduled(graph, Configuration({"M": 16}, {"N": 64}))
    (tail,) = (op for op in program.plan.walk() if isinstance(op, Tail))
    assert check_tiles(graph, program).reasons == []
    Rewriter.replace_op(tail, [], [tail.source])
    assert check_tiles(graph, program).reasons


def test_inputs_are_drawn_so_that_nothing_overflows(parse_ir: Parse) -> None:
    """exp(exp(4.3)) is the limit of float32, and float16 ends much earlier."""
    graph = example("attention_fig5a", parse_ir)
    check = check_tiles(graph, scheduled(graph, ATTENTION))
    assert check.drawing.scale < 1


def test_a_logarithm_gets_positive_inputs(parse_ir: Parse) -> None:
    text = EXPONENTIALS.format(facts="M = 64, N = 64", function="log")
    graph = graph_in(parse_ir(text))
    check = check_tiles(graph, scheduled(graph, Configuration({"M": 16}, {})))
    assert check.reasons == []
    assert check.drawing == Drawing(1.0, positive=True)
    assert str(check.drawing) == "|N(0, 1)|"


def test_what_would_take_minutes_is_refused(parse_ir: Parse) -> None:
    text = EXPONENTIALS.format(facts="", function="exp").replace("M, N", "65536, 1024")
    text = text.replace("[65536, 1024] where []", "[]").replace("[M, 1]", "[65536, 1]")
    graph = graph_in(parse_ir(text))
    with pytest.raises(ExecutionError, match="is too large"):
        check_tiles(graph, scheduled(graph, Configuration({}, {})))


# Errors


def test_errors_are_relative_and_infinities_must_agree() -> None:
    reference = np.array([3.0, 4.0, -np.inf])
    assert relative_error(np, np.array([3.0, 4.5, -np.inf]), reference) == (0.1, 0)
    assert relative_error(np, np.array([3.0, 4.0, np.nan]), reference) == (0.0, 1)
    assert relative_error(np, np.array([3.0, np.inf, -np.inf]), reference) == (0.0, 1)


def test_inputs_are_usable_where_results_are_numbers() -> None:
    good = [np.array([1.0, -np.inf])]
    assert is_usable(np, good, good)
    assert not is_usable(np, good, [np.array([np.inf, -np.inf])])
    undefined = [np.array([1.0, np.nan])]
    assert not is_usable(np, undefined, undefined)


@pytest.mark.parametrize(
    ("name", "spacing"), [("matmul", 2**-10), ("attention_qk_norm", 2**-10)]
)
def test_half_an_allowed_error_is_that_of_operators(
    name: str, spacing: float, parse_ir: Parse
) -> None:
    graph = example(name, parse_ir)
    assert allowed_error(graph, 0.0) == spacing
    assert allowed_error(graph, 1e-3) == pytest.approx(spacing + 2e-3)


def test_float32_is_allowed_its_order_of_sums_and_tf32_its_rounding() -> None:
    from cleave.tools.graph_file import parse_graph

    text = """algebra.graph @f [M] where [M = 64]
        (%x: !algebra.tensor<[M, M], f32>) -> (!algebra.tensor<[M, M], f32>) {
      %o = algebra.matmul %x, %x PRECISION
      algebra.return %o
    }"""
    exact = parse_graph(text.replace("PRECISION", "").encode(), "text")
    rounded = parse_graph(text.replace("PRECISION", "precision tf32").encode(), "text")
    assert allowed_error(exact, 0.0) == 1e-5
    assert allowed_error(rounded, 0.0) == 2**-10


def test_the_largest_error_stands_beside_what_it_was_allowed() -> None:
    check = NumericCheck("device", {}, DRAWINGS[0], [0.1, 0.3], [0.2, 0.4], [])
    assert (check.max_error, check.max_allowed) == (0.3, 0.4)


# The reference on a GPU, here on the CPU


OPERATORS = """
algebra.graph @operators [M, N] where [M = 8, N = 12]
    (%x: !algebra.tensor<[M, N], f16>, %mask: !algebra.tensor<[M, N], i1>)
    -> (!algebra.tensor<[N, M], f16>, !algebra.tensor<[M, N], f32>) {
  %a = algebra.erf %x
  %b = algebra.gelu %a
  %c = algebra.relu %x
  %d = algebra.min %b, %c
  %e = algebra.max %d, %a
  %i = algebra.iota dim 1 start 3 : !algebra.tensor<[M, N], i32>
  %positions = algebra.cast %i to f32
  %g = algebra.add %e, %positions
  %w = algebra.window diagonal N - M size 3 : !algebra.tensor<[M, N], i1>
  %s = algebra.select %w, %g, %x
  %t = algebra.select %mask, %s, %x
  %r = algebra.cast %t to f16
  %u = algebra.transpose %r permutation [1, 0]
  %m = algebra.reduce_max %x dim 1
  %y = algebra.sub %x, %m
  algebra.return %u, %y
}"""


@pytest.mark.parametrize("precision", ["float64", "rounded"])
@pytest.mark.parametrize(
    "name", ["", "attention_causal_lse", "gqa", "layernorm_matmul", "swiglu_halves"]
)
def test_graphs_mean_the_same_in_torch(
    name: str, precision: Precision, parse_ir: Parse
) -> None:
    torch = pytest.importorskip("torch")
    from cleave.lowering.compilation.torch_algebra import execute_graph_in_torch

    graph = example(name, parse_ir) if name else graph_in(parse_ir(OPERATORS))
    chosen = Configuration({"M": 16}, {"L": 16} if "attention" in name else {})
    sizes = reduced_sizes(graph, chosen)
    arrays = [
        draw(type_, sizes, DRAWINGS[1], position).astype("float16")
        if dtype_name(type_.element_type) != "bool"
        else draw(type_, sizes, DRAWINGS[1], position)
        for position, type_ in enumerate(graph.input_types)
    ]
    expected = execute_graph(graph, arrays, sizes, precision)
    tensors = [torch.tensor(array) for array in arrays]
    results = execute_graph_in_torch(graph, tensors, sizes, precision)
    for result, reference in zip(results, expected, strict=True):
        assert str(result.dtype) == f"torch.{reference.dtype}"
        error, wrong = relative_error(
            np, result.double().numpy(), reference.astype(float)
        )
        assert wrong == 0
        assert error < (1e-12 if precision == "float64" else 2e-4)
