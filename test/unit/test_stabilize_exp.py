"""
Graphs mean the same after `stabilize-exp` and `drop-shifts`, and do not overflow.

Every graph of the FileCheck tests is executed, and so are the examples. What is
expected comes from the graph as it was written, on numbers of any size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, i1, i32
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from cleave.dialects.algebra import Algebra
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph
from cleave.lowering.wide_numbers import execute_graph_widely
from cleave.passes.drop_shifts import drop_shifts
from cleave.passes.stabilize_exp import stabilize

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = Mapping[str, int]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "test" / "filecheck" / "passes"


def parsed(text: str) -> tuple[ModuleOp, GraphOp]:
    """The module has to be kept for as long as the graph is used."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Algebra)
    module = Parser(context, text).parse_module()
    module.verify()
    (graph,) = module.ops
    assert isinstance(graph, GraphOp)
    return module, graph


def graphs_in(*paths: Path) -> dict[str, str]:
    """Every graph with an exponential in files, by name, as text."""
    found: dict[str, str] = {}
    for path in paths:
        for text in path.read_text().split("// -----"):
            name = re.search(r"algebra\.graph @(\w+)", text)
            if name is not None and "algebra.exp" in text:
                found[f"{path.stem}-{name[1]}"] = text
    return found


STABLE = graphs_in(
    *(
        FOLDER / "stabilize-exp" / f"{name}.mlir"
        for name in (
            "attention",
            "masks",
            "sinks",
            "softmax",
            "logarithms",
            "together",
            "split",
        )
    )
)
SHIFTED = graphs_in(FOLDER / "drop-shifts" / "dropped.mlir")
EXAMPLES = graphs_in(*sorted((ROOT / "examples").glob("*.mlir")))
EVERY = {**STABLE, **SHIFTED, **EXAMPLES}


def changed(text: str, *passes: Callable[[GraphOp], None]) -> tuple[ModuleOp, GraphOp]:
    module, graph = parsed(text)
    for change in passes:
        change(graph)
        module.verify()
    return module, graph


################################################################################
# Inputs                                                                       #
################################################################################

NAMES = {"B": 2, "C": 2, "E": 2, "F": 2, "K": 2, "N": 4, "R": 2, "V": 6}
SIZES: tuple[Sizes, ...] = (
    {**NAMES, "H": 2, "G": 3, "M": 3, "L": 6, "D": 4, "s": 2},
    # More rows than columns: the first rows of a causal mask see nothing.
    {**NAMES, "H": 1, "G": 1, "M": 5, "L": 3, "D": 2, "s": 3},
    {**dict.fromkeys(NAMES, 1), "H": 2, "G": 1, "M": 1, "L": 1, "D": 1, "s": 1},
)


def random_inputs(
    graph: GraphOp, sizes: Sizes, *, amplitude: float = 1.0, seed: int = 0
) -> list[Array]:
    """
    Normal numbers, the first input, from which logits are made, multiplied by a number.
    """
    generator = np.random.default_rng(seed)
    inputs: list[Array] = []
    for argument, type_ in zip(graph.inputs, graph.input_types, strict=True):
        shape = evaluate_dims(type_.dims, sizes)
        if type_.element_type == i1:
            inputs.append(generator.random(shape) < 0.6)
        elif type_.element_type == i32:
            inputs.append(generator.integers(0, sizes["V"], shape))
        else:
            array = generator.normal(size=shape)
            is_divisor = argument.name_hint == "temperature"
            inputs.append(np.abs(array) + 1 if is_divisor else array)
    inputs[0] = np.clip(inputs[0], -2, 2) * amplitude
    return inputs


def results(graph: GraphOp, inputs: list[Array], sizes: Sizes) -> list[Array]:
    """Raises FloatingPointError where a NaN appears."""
    with np.errstate(over="ignore", invalid="raise", divide="ignore"):
        return execute_graph(graph, inputs, sizes)


def assert_equal(actual: Array, expected: Array, tolerance: float) -> None:
    """Equal; where nothing is expected, a row without a visible key, 0."""
    np.testing.assert_allclose(
        actual, np.nan_to_num(expected, nan=0.0, neginf=-np.inf), tolerance, tolerance
    )


################################################################################
# Meaning                                                                      #
################################################################################


@pytest.mark.parametrize("sizes", SIZES, ids=["usual", "masked", "single"])
@pytest.mark.parametrize("name", EVERY)
def test_means_the_same(name: str, sizes: Sizes) -> None:
    _original, before = parsed(EVERY[name])
    _module, after = changed(EVERY[name], drop_shifts, stabilize)
    inputs = random_inputs(before, sizes)
    expected = execute_graph_widely(before, inputs, sizes)
    for actual, wanted in zip(results(after, inputs, sizes), expected, strict=True):
        assert_equal(actual, wanted, 1e-12)


@pytest.mark.parametrize("amplitude", [300.0, 3e4])
@pytest.mark.parametrize("name", STABLE)
def test_large_logits(name: str, amplitude: float) -> None:
    sizes = SIZES[0]
    _original, before = parsed(STABLE[name])
    _module, after = changed(STABLE[name], stabilize)
    inputs = random_inputs(before, sizes, amplitude=amplitude)
    expected = execute_graph_widely(before, inputs, sizes)
    for actual, wanted in zip(results(after, inputs, sizes), expected, strict=True):
        assert np.isfinite(actual).all()
        assert_equal(actual, wanted, 1e-10)


def test_large_logits_overflow_otherwise() -> None:
    """The test above would notice an exponent that is not shifted."""
    name = "attention-division_behind"
    _module, before = parsed(STABLE[name])
    inputs = random_inputs(before, SIZES[0], amplitude=3e4)
    with pytest.raises(FloatingPointError):
        results(before, inputs, SIZES[0])


OTHER_FORM = {"masks-selected_behind", "together-mixture"}
"""Come back as equal graphs: with the mask under the exponential, in another base."""


@pytest.mark.parametrize("name", sorted(EVERY.keys() - OTHER_FORM))
def test_there_and_back(name: str) -> None:
    """What `stabilize-exp` adds is what `drop-shifts` removes."""
    _module, graph = changed(EVERY[name], drop_shifts)
    _again, other = changed(EVERY[name], drop_shifts, stabilize, drop_shifts)
    assert expressions(other) == expressions(graph)


def expressions(graph: GraphOp) -> list[str]:
    """What a graph returns, as text without names of values."""
    texts: dict[SSAValue, str] = {
        argument: f"input {number}" for number, argument in enumerate(graph.inputs)
    }
    for op in graph.operators:
        operands = ", ".join(texts[operand] for operand in op.operands)
        params = sorted(op.params.items())
        texts[op.results[0]] = f"{op.name}({operands}; {params}: {op.result_type})"
    return [texts[value] for value in graph.return_op.values]


@pytest.mark.parametrize("name", EVERY)
def test_stays_as_it_is_the_second_time(name: str) -> None:
    module, graph = changed(EVERY[name], stabilize)
    again, other = changed(EVERY[name], stabilize, stabilize)
    for each in (graph, other):
        each.attributes.clear()
    assert str(again) == str(module)
