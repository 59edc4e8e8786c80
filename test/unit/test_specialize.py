"""`specialize` keeps what equals its original, at every count of parts, and no more."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.contraction import ReduceMax
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_pieces import execute_pieces
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.specialize import TESTED, SpecializePass
from cleave.passes.split_choices import choices_of, chosen
from cleave.passes.superoptimize.superoptimize import SuperoptimizePass

ParseIR = Callable[[str], ModuleOp]


def graphs_of(module: ModuleOp) -> Iterator[GraphOp]:
    return (op for op in module.ops if isinstance(op, GraphOp))


def sizes_tested(graph: GraphOp) -> list[dict[str, int]]:
    tested = cast(ArrayAttr[DictionaryAttr], graph.attributes[TESTED])
    return [
        {name: cast(IntegerAttr, size).value.data for name, size in each.data.items()}
        for each in tested
    ]


@pytest.fixture
def rowsum(parse_ir: Callable[[str], ModuleOp]) -> ModuleOp:
    module = parse_ir("""
        algebra.graph @rowsum [M, K] where [K = 12]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
          %y = algebra.reduce_sum %x dim 1
          algebra.return %y
        }""")
    SuperoptimizePass(split="inputs").apply(Context(), module)
    return module


def test_every_proper_divisor_is_a_count(rowsum: ModuleOp):
    SpecializePass(sizes="M=8").apply(Context(), rowsum)
    rowsum.verify()
    assert [graph.graph_name for graph in graphs_of(rowsum)] == [
        "rowsum",
        "rowsum_1",
        *(f"rowsum_2_s{count}" for count in (2, 3, 4, 6)),
    ]
    *_, last = graphs_of(rowsum)
    assert last.facts.binding["M"] == 8
    assert last.facts.binding["s"] == 6
    assert sizes_tested(last) == [{"M": 8, "K": 12, "s": 6}]


def test_counts_may_be_chosen(rowsum: ModuleOp):
    SpecializePass(sizes="M=8", counts=(4, 5)).apply(Context(), rowsum)
    assert [graph.graph_name for graph in graphs_of(rowsum)][2:] == ["rowsum_2_s4"]


def test_no_count_leaves_the_graphs_without_splits(
    rowsum: ModuleOp, capsys: pytest.CaptureFixture[str]
):
    SpecializePass(sizes="M=8", counts=(5,)).apply(Context(), rowsum)
    assert len(list(graphs_of(rowsum))) == 2
    assert "no count divides K, which is 12" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"counts": (12,)}, "12 parts of K, which is 12, have fewer than 2 positions"),
        (
            {"counts": (4, 6), "most_parts": 3},
            "4 parts of K, which is 12, are more than most-parts=3",
        ),
        ({"counts": (24,)}, "no count divides K, which is 12"),
    ],
)
def test_the_limit_that_leaves_no_count_is_named(
    rowsum: ModuleOp,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, Any],
    reason: str,
):
    SpecializePass(sizes="M=8", **options).apply(Context(), rowsum)
    assert len(list(graphs_of(rowsum))) == 2
    assert f"graph @rowsum_2 is dropped: {reason}" in capsys.readouterr().err


def test_parts_of_an_original_that_are_too_small_are_an_error(parse_ir: ParseIR):
    (_, parts) = graphs_of(in_parts(parse_ir, 12, RIGHT))
    parts.attributes.clear()
    module = ModuleOp([parts.clone()])
    reason = "2 parts of K, which is 12, have fewer than 8 positions"
    with pytest.raises(PassFailedException, match=f"graph @parts: {reason}"):
        SpecializePass(least_part=8).apply(Context(), module)


def test_large_tensors_are_tested_smaller(rowsum: ModuleOp):
    SpecializePass(sizes="M=4096", budget=120).apply(Context(), rowsum)
    *_, last = graphs_of(rowsum)
    assert last.facts.binding["M"] == 4096
    (tested,) = sizes_tested(last)
    assert tested["M"] == 8


def test_a_symbol_without_size_is_an_error(rowsum: ModuleOp):
    with pytest.raises(PassFailedException, match=r"symbol M of graph @rowsum"):
        SpecializePass().apply(Context(), rowsum)


def test_sizes_do_not_contradict_facts(rowsum: ModuleOp):
    with pytest.raises(PassFailedException, match=r"K .* is 12 by its facts, not 16"):
        SpecializePass(sizes="M=8 K=16").apply(Context(), rowsum)


def test_what_is_not_equal_is_dropped(
    rowsum: ModuleOp, capsys: pytest.CaptureFixture[str]
):
    *_, split = graphs_of(rowsum)
    reduction = list(split.operators)[1]
    Rewriter.replace_op(reduction, ReduceMax(reduction.operands[0], dim=2))
    SpecializePass(sizes="M=8", counts=(2,)).apply(Context(), rowsum)
    assert len(list(graphs_of(rowsum))) == 2
    assert "it does not equal @rowsum" in capsys.readouterr().err


# Counts that stay together

# 4099 has no divisors, but 2, 4 and 8 parts of a chunk each.
EXTENTS = pytest.mark.parametrize(
    ("extent", "counts"), [(96, [2, 3, 4, 6, 8, 12, 16, 24, 32, 48]), (4099, [2, 4, 8])]
)

RIGHT = "%o = algebra.reduce_sum %ls dim 0"

TIMES_COUNT = """
          %t = algebra.reduce_sum %ls dim 0
          %no = algebra.sub %ls, %ls
          %each = algebra.add %no, %t
          %all = algebra.reduce_sum %each dim 0
          %n = algebra.constant {count}.0 : !algebra.tensor<[], f32>
          %o = algebra.div %all, %n"""


def in_parts(parse_ir: ParseIR, extent: int, body: str) -> ModuleOp:
    """Sums of rows, and what is said to equal them; `%ls` are the sums of the parts."""
    module = parse_ir(f"""
        algebra.graph @rowsum [M, K] where [M = 4, K = {extent}]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {{
          %y = algebra.reduce_sum %x dim 1
          algebra.return %y
        }}
        algebra.graph @parts [M, K, s] where [M = 4, K = {extent}, s | K]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>)
            attributes {{equals = @rowsum}} {{
          %xs = algebra.split %x dim 1 count s
          %ls = algebra.reduce_sum %xs dim 2
          {body}
          %y = algebra.reshape %o to [M, 1]
          algebra.return %y
        }}""")
    module.verify()
    return module


@EXTENTS
def test_counts_stay_together(parse_ir: ParseIR, extent: int, counts: list[int]):
    module = in_parts(parse_ir, extent, RIGHT)
    SpecializePass(apart=False).apply(Context(), module)
    module.verify()
    _, parts = graphs_of(module)
    assert "s" not in parts.facts.binding
    assert [choice["s"] for choice in choices_of(parts)] == counts
    for choice in choices_of(parts):
        assert choice["s"] * choice.get("C", extent // choice["s"]) >= extent
    assert [sizes["s"] for sizes in sizes_tested(parts)] == [counts[0], counts[-1]]


@EXTENTS
def test_pieces_with_a_choice_made_compute_the_whole(
    parse_ir: ParseIR, extent: int, counts: list[int]
):
    module = in_parts(parse_ir, extent, RIGHT)
    for pass_ in (SpecializePass(apart=False), PartitionSplitPass()):
        pass_.apply(Context(), module)
    module.verify()
    whole, *pieces = graphs_of(module)
    inputs = [np.random.default_rng(2).standard_normal((4, extent), np.float32)]
    (expected,) = execute_graph(whole, inputs)
    assert len(choices_of(pieces[0])) == len(counts)
    for choice in choices_of(pieces[0]):
        made = [chosen(piece, choice) for piece in pieces]
        for piece in made:
            piece.verify()
        (result,) = execute_pieces(made, inputs)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


MUTANTS: dict[str, Callable[[list[int]], str]] = {
    "another reduction": lambda counts: "%o = algebra.reduce_max %ls dim 0",
    "parts are left out": lambda counts: (
        """
          %no = algebra.sub %ls, %ls
          %m = algebra.reduce_max %no dim 0
          %o = algebra.add %m, %m"""
    ),
    "right for the least parts": lambda counts: TIMES_COUNT.format(count=counts[0]),
    "right for the most parts": lambda counts: TIMES_COUNT.format(count=counts[-1]),
}


@EXTENTS
@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("budget", [1 << 8, SpecializePass.budget])
def test_what_is_equal_for_some_counts_at_most_is_dropped(
    parse_ir: ParseIR,
    capsys: pytest.CaptureFixture[str],
    extent: int,
    counts: list[int],
    name: str,
    budget: int,
):
    module = in_parts(parse_ir, extent, MUTANTS[name](counts))
    SpecializePass(apart=False, budget=budget).apply(Context(), module)
    assert [graph.graph_name for graph in graphs_of(module)] == ["rowsum"]
    assert "it does not equal @rowsum" in capsys.readouterr().err


def test_counts_apart_are_tested_each(parse_ir: ParseIR):
    module = in_parts(parse_ir, 96, TIMES_COUNT.format(count=6))
    SpecializePass().apply(Context(), module)
    assert [graph.graph_name for graph in graphs_of(module)] == ["rowsum", "parts_s6"]


def test_choices_that_do_not_read_as_such(parse_ir: ParseIR):
    (graph,) = graphs_of(
        parse_ir("""
            algebra.graph @exp [M, s] (%x: !algebra.tensor<[M, s], f32>)
                -> (!algebra.tensor<[M, s], f32>)
                attributes {choices = {s = array<i64: 2, 3>, M = array<i64: 4>}} {
              %y = algebra.exp %x
              algebra.return %y
            }""")
    )
    with pytest.raises(ValueError, match=r"@exp has choices = .*, but these are lists"):
        choices_of(graph)
