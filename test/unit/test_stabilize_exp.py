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
from cleave.dialects.algebra.contraction import LOWEST, Reference
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
# The ratio of two exponentials is as large as it is.
@pytest.mark.parametrize("name", sorted(STABLE.keys() - {"together-ratio"}))
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


@pytest.mark.parametrize("name", STABLE)
def test_any_reference_is_sound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _module, graph = changed(STABLE[name], stabilize)
    inputs = random_inputs(graph, SIZES[0])
    expected = results(graph, inputs, SIZES[0])
    generator = np.random.default_rng(1)

    def other(_np: Any, arrays: list[Array], params: Any, _: Any) -> Array:
        axis: int = params["dim"]
        largest: Array = np.max(arrays[0], axis=axis, keepdims=True, initial=LOWEST)
        largest[largest > LOWEST] = generator.normal(size=(largest > LOWEST).sum())
        return largest

    monkeypatch.setattr(Reference, "numpy", staticmethod(other))
    for actual, wanted in zip(results(graph, inputs, SIZES[0]), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, 1e-12, 1e-12)


OTHER_FORM = {
    "masks-selected_behind",
    "masks-multiplied_behind",
    "together-mixture",
    "together-ratio",
}
"""
Come back as equal graphs: masked under the exponential, in another base, or as one.
"""


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


################################################################################
# Masks                                                                        #
################################################################################


def executed(name: str, **replaced: Array) -> list[Array]:
    """A stable graph on the usual inputs, some of which are replaced."""
    _module, graph = changed(EVERY[name], stabilize)
    inputs = random_inputs(graph, SIZES[0])
    for position, argument in enumerate(graph.inputs):
        inputs[position] = replaced.get(argument.name_hint or "", inputs[position])
    return results(graph, inputs, SIZES[0])


@pytest.mark.parametrize("hidden", [-np.inf, -65504.0])
def test_rows_without_a_visible_key(hidden: float) -> None:
    """A bias of -inf makes a row 0; a finite one makes it the mean of all values."""
    generator = np.random.default_rng(0)
    bias = generator.normal(size=(2, 3, 6))
    bias[:, 1] = hidden
    queries = generator.normal(size=(2, 3, 4))
    queries[:, 1] = 0
    values = generator.normal(size=(2, 6, 4)).astype(np.float16)
    (o,) = executed("masks-bias", bias=bias, q=queries, v=values)
    mean = values.astype(np.float64).mean(axis=1)
    np.testing.assert_allclose(o[:, 1], 0 if np.isinf(hidden) else mean, 1e-12)
    assert (o[:, [0, 2]] != 0).all()


def test_log_sum_exp_of_a_row_without_a_visible_key() -> None:
    _module, graph = changed(EVERY["attention-causal_lse"], stabilize)
    o, lse = results(graph, random_inputs(graph, SIZES[1]), SIZES[1])
    assert (o[:, :2] == 0).all()
    assert (lse[:, :2] == -np.inf).all()
    assert np.isfinite(lse[:, 2:]).all()


def test_one_visible_key_gives_its_value() -> None:
    mask = np.eye(3, 6, k=2, dtype=bool)
    values = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float16)
    (o,) = executed("masks-mask_tensor", mask=mask, v=values)
    assert (o == values[:, 2:5]).all()


@pytest.mark.parametrize("name", ["masks-mask_tensor", "masks-selected_behind"])
def test_hidden_keys_do_not_matter(name: str) -> None:
    mask = np.tri(3, 6, k=3, dtype=bool)
    mask[:, 2] = False
    shape = (2, 6, 4) if name == "masks-mask_tensor" else (6, 4)
    keys = np.random.default_rng(0).normal(size=shape)
    others = keys.copy()
    # The last key is behind every diagonal but one.
    others[..., 2 if name == "masks-mask_tensor" else 5, :] = 6e4
    rows = slice(None) if name == "masks-mask_tensor" else slice(2)
    (o,) = executed(name, mask=mask, k=keys)
    (same,) = executed(name, mask=mask, k=others)
    assert (o[..., rows, :] == same[..., rows, :]).all()


@pytest.mark.parametrize("sink", [-np.inf, -3e4, 300.0, 3e4])
def test_sinks_of_any_size(sink: float) -> None:
    sinks = np.full((2, 1, 1), sink)
    o, lse = executed("sinks-sink", sink=sinks)
    (plain,) = executed("attention-division_behind")
    np.testing.assert_allclose(o, 0 if sink > 0 else plain, 1e-12, atol=1e-100)
    if sink > 0:
        np.testing.assert_allclose(lse, sink, 1e-12)
