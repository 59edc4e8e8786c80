"""Specialized and partitioned candidates compute what their original does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_pieces import execute_pieces
from cleave.passes.partition_split import REFUSED, PartitionSplitPass
from cleave.passes.partitioning.piece import piece_of
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
