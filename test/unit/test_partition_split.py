"""Specialized and partitioned candidates compute what their original does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from cleave.dialects.algebra.contraction import ReduceMax
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_pieces import execute_pieces
from cleave.passes.partition_split import REFUSED, PartitionSplitPass
from cleave.passes.partitioning.piece import piece_of
from cleave.passes.specialize import TESTED, SpecializePass
from cleave.passes.superoptimize.superoptimize import SuperoptimizePass

EXAMPLES = Path(__file__).parents[2] / "examples"


def graphs_of(module: ModuleOp) -> Iterator[GraphOp]:
    return (op for op in module.ops if isinstance(op, GraphOp))


def sizes_of(graph: GraphOp) -> dict[str, int]:
    return {
        name: 2 if name.startswith("s") else 4 + 2 * (position % 3)
        for position, name in enumerate(graph.symbol_names)
    }


def random_inputs(graph: GraphOp) -> list[NDArray[np.float64]]:
    generator = np.random.default_rng(3)
    sizes = sizes_of(graph)
    return [
        0.5 * generator.standard_normal([evaluate(dim, sizes) for dim in type_.dims])
        for type_ in graph.input_types
    ]


@pytest.mark.parametrize(
    ("example", "plans"),
    [
        ("matmul", 1),
        ("matmul_rowsum", 5),
        ("swiglu", 5),
        ("rmsnorm_matmul", 15),
        ("mha", 2),
        ("gqa", 2),
        ("mla_decode", 2),
        ("attention_causal_lse", 6),
        ("swiglu_halves", 7),
        ("lora", 13),
    ],
)
def test_kernels_together_are_the_graph(
    parse_ir: Callable[[str], ModuleOp], example: str, plans: int
):
    module = parse_ir((EXAMPLES / f"{example}.mlir").read_text())
    SuperoptimizePass(split="inputs").apply(Context(), module)
    PartitionSplitPass().apply(Context(), module)
    module.verify()
    original, *_ = graphs_of(module)
    inputs = random_inputs(original)
    expected = execute_graph(original, inputs, sizes_of(original))
    by_plan: dict[str, list[GraphOp]] = {}
    for graph in graphs_of(module):
        if (piece := piece_of(graph)) is not None:
            by_plan.setdefault(piece.of, []).append(graph)
    for kernels in by_plan.values():
        found = execute_pieces(kernels, inputs, sizes_of(kernels[0]))
        for result, array in zip(found, expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-12, atol=1e-12)
    assert len(by_plan) == plans


def test_what_cannot_be_cut_is_counted_by_reason(parse_ir: Callable[[str], ModuleOp]):
    module = parse_ir((EXAMPLES / "mha.mlir").read_text())
    SuperoptimizePass(split="inputs").apply(Context(), module)
    PartitionSplitPass().apply(Context(), module)
    original, *_ = graphs_of(module)
    refused = original.attributes[REFUSED]
    assert isa(refused, DictionaryAttr)
    assert set(refused.data) == {
        "a computed tensor crosses with the dim of the parts",
        "a matmul behind the split kernel",
    }


def test_a_graph_of_the_user_that_cannot_be_cut_is_an_error(
    parse_ir: Callable[[str], ModuleOp],
):
    module = parse_ir("""
        algebra.graph @twice [M, K, s] where [s | K]
            (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[M, M], f32>)
            -> (!algebra.tensor<[1, M, 1], f32>) {
          %0 = algebra.split %x dim 1 count s
          %1 = algebra.reduce_sum %0 dim 2
          %2 = algebra.reduce_sum %1 dim 0
          %3 = algebra.matmul %w, %2
          algebra.return %3
        }""")
    with pytest.raises(PassFailedException, match="@twice: a matmul behind the split"):
        PartitionSplitPass().apply(Context(), module)


class TestSpecialize:
    @pytest.fixture
    def rowsum(self, parse_ir: Callable[[str], ModuleOp]) -> ModuleOp:
        module = parse_ir("""
            algebra.graph @rowsum [M, K] where [K = 12]
                (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
              %y = algebra.reduce_sum %x dim 1
              algebra.return %y
            }""")
        SuperoptimizePass(split="inputs").apply(Context(), module)
        return module

    def test_every_proper_divisor_is_a_count(self, rowsum: ModuleOp):
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
        assert isa(tested := last.attributes[TESTED], DictionaryAttr)
        assert str(tested.data["K"]).startswith("12")

    def test_counts_may_be_chosen(self, rowsum: ModuleOp):
        SpecializePass(sizes="M=8", counts=(4, 5)).apply(Context(), rowsum)
        assert [graph.graph_name for graph in graphs_of(rowsum)][2:] == ["rowsum_2_s4"]

    def test_no_count_leaves_the_graphs_without_splits(
        self, rowsum: ModuleOp, capsys: pytest.CaptureFixture[str]
    ):
        SpecializePass(sizes="M=8", counts=(5,)).apply(Context(), rowsum)
        assert len(list(graphs_of(rowsum))) == 2
        assert "no count divides K, which is 12" in capsys.readouterr().err

    def test_large_tensors_are_tested_smaller(self, rowsum: ModuleOp):
        SpecializePass(sizes="M=4096", budget=120).apply(Context(), rowsum)
        *_, last = graphs_of(rowsum)
        assert last.facts.binding["M"] == 4096
        assert isa(tested := last.attributes[TESTED], DictionaryAttr)
        assert str(tested.data["M"]).startswith("8")

    def test_a_symbol_without_size_is_an_error(self, rowsum: ModuleOp):
        with pytest.raises(PassFailedException, match=r"symbol M of graph @rowsum"):
            SpecializePass().apply(Context(), rowsum)

    def test_sizes_do_not_contradict_facts(self, rowsum: ModuleOp):
        with pytest.raises(
            PassFailedException, match=r"K .* is 12 by its facts, not 16"
        ):
            SpecializePass(sizes="M=8 K=16").apply(Context(), rowsum)

    def test_what_is_not_equal_is_dropped(
        self, rowsum: ModuleOp, capsys: pytest.CaptureFixture[str]
    ):
        *_, split = graphs_of(rowsum)
        reduction = list(split.operators)[1]
        Rewriter.replace_op(reduction, ReduceMax(reduction.operands[0], dim=2))
        SpecializePass(sizes="M=8", counts=(2,)).apply(Context(), rowsum)
        assert len(list(graphs_of(rowsum))) == 2
        assert "it does not equal @rowsum" in capsys.readouterr().err
