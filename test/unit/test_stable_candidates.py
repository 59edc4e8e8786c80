"""Every graph that the search finds can be shifted, and is right on large logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, i32
from xdsl.parser import Parser

from cleave.dialects.algebra import Algebra
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph
from cleave.lowering.wide_numbers import execute_graph_widely
from cleave.passes.drop_shifts import drop_shifts
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.stabilize_exp import KEPT_EXPONENTS, stabilize
from cleave.passes.superoptimize.superoptimize import EQUALS, SuperoptimizePass

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"H": 2, "G": 2, "B": 2, "M": 3, "L": 6, "D": 4, "C": 4, "R": 2, "V": 6, "N": 6}


def parsed(name: str) -> tuple[ModuleOp, GraphOp]:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Algebra)
    text = (EXAMPLES / f"{name}.mlir").read_text()
    module = Parser(context, text).parse_module()
    (graph,) = module.ops
    return module, cast(GraphOp, graph)


def searched(name: str) -> tuple[ModuleOp, list[GraphOp]]:
    """The candidates for an example, with dims of inputs split."""
    module, graph = parsed(name)
    drop_shifts(graph)
    SuperoptimizePass(split="inputs").apply(Context(), module)
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    return module, [graph for graph in graphs if EQUALS in graph.attributes]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("attention_softmax", 20),
        ("attention_causal", 30),
        ("attention_sink", 30),
        ("attention_lse", 20),
        ("cross_entropy", 30),
        ("log_softmax", 2),
        ("mla_decode", 10),
        ("gqa", 5),
    ],
)
def test_candidates(name: str, count: int) -> None:
    _original, before = parsed(name)
    module, candidates = searched(name)
    assert len(candidates) >= count
    generator = np.random.default_rng(0)
    inputs: list[NDArray[Any]] = [
        generator.integers(0, SIZES["V"], evaluate_dims(type_.dims, SIZES))
        if type_.element_type == i32
        else np.clip(generator.normal(size=evaluate_dims(type_.dims, SIZES)), -2, 2)
        for type_ in before.input_types
    ]
    inputs[0] = inputs[0] * 3e4
    expected = execute_graph_widely(before, inputs, SIZES)
    for graph in candidates:
        stabilize(graph)
        graph.verify()
        assert KEPT_EXPONENTS not in graph.attributes
        sizes = {**dict.fromkeys(graph.symbol_names, 2), **SIZES}
        with np.errstate(all="ignore"):
            results = execute_graph(graph, inputs, sizes)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, 1e-9, 1e-9)
    del module


def test_flash_decoding() -> None:
    """A split kernel that passes its references on, and one that combines by them."""
    module, candidates = searched("attention_lse")
    for graph in candidates:
        stabilize(graph)
    PartitionSplitPass().apply(Context(), module)
    module.verify()
    kernels = {op.graph_name: op for op in module.ops if isinstance(op, GraphOp)}
    combined = [
        (kernels[name.replace("_combine", "_split")], graph)
        for name, graph in kernels.items()
        if name.endswith("_combine")
    ]
    assert combined
    for split, combine in combined:
        references = {op.results[0] for op in split.operators if op.IS_REFERENCE}
        assert references & set(split.return_op.values)
        assert any(op.IS_REFERENCE for op in combine.operators)
