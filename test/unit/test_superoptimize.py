"""What the superoptimizer finds for the examples, and that all of it is right."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from cleave.dialects.algebra.contraction import ReduceMax
from cleave.dialects.algebra.elementwise import Silu
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import evaluate
from cleave.lowering.numpy_algebra import execute_graph
from cleave.passes.superoptimize import limits
from cleave.passes.superoptimize.equivalence import Reference
from cleave.passes.superoptimize.exporting import Exporter
from cleave.passes.superoptimize.expressions import Expressions
from cleave.passes.superoptimize.extraction import Extraction
from cleave.passes.superoptimize.graph import SearchGraph
from cleave.passes.superoptimize.importing import import_graph
from cleave.passes.superoptimize.promising import Extents, kind, work
from cleave.passes.superoptimize.superoptimize import (
    EQUALS,
    SEARCH,
    VERIFIED,
    SuperoptimizePass,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

COUNTS = {
    "matmul": (1, 2),
    "matmul_matmul": (2, 8),
    "matmul_rowsum": (2, 8),
    "swiglu": (1, 6),
    "rmsnorm_matmul": (4, 25),
    "mha": (2, 7),
    "gqa": (2, 7),
    "mqa": (2, 7),
    "mla_decode": (2, 11),
    "mla_prefill": (2, 7),
    "attention_softmax": (12, 46),
    "attention_causal_lse": (9, 33),
    "attention_qk_norm": (24, 238),
    "rmsnorm_swiglu": (54, 342),
    "swiglu_halves": (1, 8),
    "lora": (3, 21),
    "gated_mlp": (1, 9),
    "layernorm_matmul": (12, 113),
}
"""For each example the number of candidates, without and with splits."""

Load = Callable[..., list[GraphOp]]


@pytest.fixture
def superoptimized(parse_ir: Callable[[str], ModuleOp]) -> Load:
    """`superoptimized(example, **options)`: the original and its candidates."""

    def load(example: str, **options: Any) -> list[GraphOp]:
        module = parse_ir((EXAMPLES / f"{example}.mlir").read_text())
        SuperoptimizePass(**options).apply(Context(), module)
        module.verify()
        return [op for op in module.ops if isinstance(op, GraphOp)]

    return load


def sizes_of(graph: GraphOp) -> dict[str, int]:
    """Small sizes, none like those of the search, that any split divides."""
    sizes: dict[str, int] = {}
    for position, name in enumerate(graph.symbol_names):
        is_count = any(
            fact.relation == "|" and str(fact.lhs) == name for fact in graph.facts
        )
        sizes[name] = 2 if is_count else 4 + 2 * (position % 3)
    return sizes


def random_inputs(
    graph: GraphOp, sizes: Mapping[str, int], seed: int = 0
) -> list[NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    return [
        0.5 * generator.standard_normal([evaluate(dim, sizes) for dim in type_.dims])
        for type_ in graph.input_types
    ]


def relative_difference(
    results: Sequence[NDArray[Any]], references: Sequence[NDArray[Any]]
) -> float:
    return max(
        float(np.abs(result - reference).max() / np.abs(reference).max())
        for result, reference in zip(results, references, strict=True)
    )


@pytest.mark.parametrize("example", COUNTS)
@pytest.mark.parametrize("split", ["none", "inputs"])
def test_candidates_are_as_many_as_before_and_equal(
    superoptimized: Load, example: str, split: str
):
    # Time enough on a busy machine: a limit that is hit would change the counts.
    original, *candidates = superoptimized(example, split=split, seconds=300.0)
    assert len(candidates) == COUNTS[example][split == "inputs"]
    assert_all_equal(original, candidates)


@pytest.mark.parametrize(
    "example",
    sorted({path.stem for path in EXAMPLES.glob("*.mlir")} - COUNTS.keys()),
)
def test_candidates_of_other_examples_are_equal(superoptimized: Load, example: str):
    original, *candidates = superoptimized(example, split="inputs", graphs=15)
    assert candidates
    assert_all_equal(original, candidates)


def assert_all_equal(original: GraphOp, candidates: Sequence[GraphOp]) -> None:
    """In float64, and on fresh fingerprints, at sizes that the search did not use."""
    sizes = sizes_of(original)
    inputs = random_inputs(original, sizes)
    expected = execute_graph(original, inputs, sizes)
    reference = Reference(original, sizes, seed=99)
    for candidate in candidates:
        sizes = sizes_of(candidate)
        results = execute_graph(candidate, inputs, sizes)
        assert relative_difference(results, expected) <= 1e-12
        assert reference.equals(candidate, sizes)


@pytest.mark.parametrize("example", ["attention_causal", "attention_softcap"])
def test_nothing_divides_by_a_sum_that_may_vanish(superoptimized: Load, example: str):
    """
    As fingerprints, the exponentials of what is hidden divide by their sum with and
    without the maximum; without it, nothing says that they are not all zero.
    """
    _, *candidates = superoptimized(example, seconds=300.0)
    assert len(candidates) > 1
    for candidate in candidates:
        assert any(isinstance(op, ReduceMax) for op in candidate.operators)


@pytest.mark.parametrize("example", ["mha", "rmsnorm_matmul", "mla_decode", "lora"])
def test_every_seed_finds_the_same(superoptimized: Load, example: str):
    texts: set[str] = set()
    for seed in range(1, 6):
        original, *candidates = superoptimized(
            example, split="inputs", seed=seed, stats=True, seconds=300.0
        )
        search = original.attributes[SEARCH]
        assert isa(search, DictionaryAttr)
        statistics = search.data["statistics"]
        assert isa(statistics, DictionaryAttr)
        values, useful = statistics.data["values"], statistics.data["useful"]
        for candidate in candidates:
            candidate.attributes.clear()
        texts.add(f"{values} {useful} {[str(c) for c in candidates]}")
    assert len(texts) == 1


def test_candidates_say_what_they_equal_and_how_that_is_known(superoptimized: Load):
    original, first, second = superoptimized("mha")
    assert EQUALS not in original.attributes
    assert str(first.attributes[EQUALS]) == str(second.attributes[EQUALS]) == "@mha"
    assert VERIFIED not in first.attributes
    verified = second.attributes[VERIFIED]
    assert isa(verified, DictionaryAttr)
    assert set(verified.data) == {"seeds", "trials", "sizes", "float64"}
    assert isa(trials := verified.data["trials"], IntegerAttr)
    assert trials.value.data == 2


def test_neither_candidates_nor_their_original_are_searched_again(
    superoptimized: Load, capsys: pytest.CaptureFixture[str]
):
    graphs = superoptimized("mha")
    module = ModuleOp([graph.clone() for graph in graphs])
    SuperoptimizePass().apply(Context(), module)
    names = [op.graph_name for op in module.ops if isinstance(op, GraphOp)]
    assert names == ["mha", "mha_1", "mha_2"]
    assert "graph @mha has candidates; not searched again" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["values", "graphs", "seconds"])
def test_a_limit_is_named_and_keeps_what_there_is(
    superoptimized: Load, capsys: pytest.CaptureFixture[str], limit: str
):
    value = 0.0 if limit == "seconds" else 5
    original, *candidates = superoptimized(
        "mla_decode", split="inputs", **{limit: value}
    )
    search = original.attributes[SEARCH]
    assert isa(search, DictionaryAttr)
    assert f"{limit}=" in str(search.data["stopped_by"])
    assert f"stopped by {limit}=" in capsys.readouterr().err
    assert candidates
    sizes = sizes_of(original)
    reference = Reference(original, sizes)
    assert all(reference.equals(c, sizes_of(c)) for c in candidates)


def test_the_most_promising_of_every_kind_are_kept(
    superoptimized: Load, capsys: pytest.CaptureFixture[str]
):
    """By what matmuls take from memory, graphs of QK-norm are of four kinds."""
    original, *every = superoptimized("attention_qk_norm")
    _, *kept = superoptimized("attention_qk_norm", promising=8)
    assert (len(every), len(kept)) == (24, 9)
    assert (
        "keeps the 8 graphs of least work of every kind, and leaves out 15 equal "
        in (capsys.readouterr().err)
    )
    imported = import_graph(original)
    extents = Extents(imported, {"H": 32, "M": 4096, "L": 4096, "D": 128})
    least: dict[object, int] = {}
    for graph in (import_graph(each).graph for each in every):
        known = least.setdefault(kind(graph), work(graph, extents))
        least[kind(graph)] = min(known, work(graph, extents))
    found: dict[object, int] = {}
    for graph in (import_graph(each).graph for each in kept[1:]):
        known = found.setdefault(kind(graph), work(graph, extents))
        assert known <= work(graph, extents)
    assert len(least) == 4
    assert found == least


def test_graphs_that_distributing_finds_again_are_read_off_once(
    parse_ir: Callable[[str], ModuleOp], monkeypatch: pytest.MonkeyPatch
):
    """Here, a sum with a number in it has no products to distribute."""
    read_off, graphs = 0, Extraction.graphs

    def counted(self: Extraction, largest: int) -> Iterator[SearchGraph]:
        nonlocal read_off
        read_off += 1
        return graphs(self, largest)

    monkeypatch.setattr(Extraction, "graphs", counted)
    module = parse_ir("""
        algebra.graph @norm [M, K] (%x: !algebra.tensor<[M, K], f16>)
            -> (!algebra.tensor<[M, K], f32>) {
          %eps = algebra.constant 0.001 : !algebra.tensor<[], f32>
          %xx = algebra.square %x
          %sum = algebra.reduce_sum %xx dim 1
          %more = algebra.add %sum, %eps
          %root = algebra.rsqrt %more
          %o = algebra.mul %x, %root
          algebra.return %o
        }""")
    SuperoptimizePass().apply(Context(), module)
    assert 'sums = "distributed"' in str(module)
    assert read_off == 1


def test_sums_stay_opaque_where_distributing_does_not_end(
    superoptimized: Load, capsys: pytest.CaptureFixture[str]
):
    original, *candidates = superoptimized("layernorm_matmul", values=100)
    search = original.attributes[SEARCH]
    assert isa(search, DictionaryAttr)
    assert str(search.data["sums"]) == '"opaque"'
    assert str(search.data["stopped_by"]) == '["values=100 (distributing)"]'
    assert "stopped by values=100 (distributing)" in capsys.readouterr().err
    assert len(candidates) > 1


def test_distributing_loses_nothing(superoptimized: Load):
    """Every graph that is found with opaque sums is found without, too."""
    distributed = superoptimized("layernorm_matmul")
    opaque = superoptimized("layernorm_matmul", values=100)
    expressions = Expressions()
    every = {expressions.of_outputs(import_graph(graph).graph) for graph in distributed}
    assert {
        expressions.of_outputs(import_graph(graph).graph) for graph in opaque
    } <= every


def chain(operators: int) -> str:
    """A graph of many different products and sums, which has very many equal ones."""
    lines = ["%t0 = algebra.matmul %x, %x"]
    for n in range(1, operators):
        step = ("add", "matmul", "mul", "sub")[n % 4]
        lines.append(f"%t{n} = algebra.{step} %t{n - 1}, %{'x' if n % 3 else 'y'}")
    body = "\n".join(lines)
    return f"""
        algebra.graph @chain [M] (%x: !algebra.tensor<[M, M], f32>,
                                  %y: !algebra.tensor<[M, M], f32>)
            -> (!algebra.tensor<[M, M], f32>) {{
          {body}
          algebra.return %t{operators - 1}
        }}"""


def test_a_large_graph_keeps_to_its_time(
    parse_ir: Callable[[str], ModuleOp], capsys: pytest.CaptureFixture[str]
):
    module = parse_ir(chain(40))
    started = time.monotonic()
    SuperoptimizePass(split="inputs", seconds=2.0).apply(Context(), module)
    assert time.monotonic() - started < 20
    assert "stopped by seconds=2;" in capsys.readouterr().err
    _, first, *_ = module.ops
    assert isinstance(first, GraphOp)
    assert len(list(first.operators)) == 40


def test_products_that_double_at_every_step_end_the_search(
    parse_ir: Callable[[str], ModuleOp], capsys: pytest.CaptureFixture[str]
):
    steps = "\n".join(f"%t{n} = algebra.square %t{n - 1}" for n in range(1, 40))
    module = parse_ir(f"""
        algebra.graph @power [M] (%t0: !algebra.tensor<[M], f32>)
            -> (!algebra.tensor<[M], f32>) {{
          {steps}
          algebra.return %t39
        }}""")
    SuperoptimizePass().apply(Context(), module)
    assert "stopped by factors=10000; keeps the 1 graph" in capsys.readouterr().err
    assert len(list(module.ops)) == 2


def test_writing_graphs_down_keeps_to_the_time_as_well(
    superoptimized: Load, monkeypatch: pytest.MonkeyPatch
):
    export, now = Exporter.export, 0.0

    def slowly(self: Exporter, *args: Any) -> GraphOp:
        nonlocal now
        now += 0.2
        return export(self, *args)

    # A clock that stands still but for writing.
    monkeypatch.setattr(limits, "time", SimpleNamespace(thread_time=lambda: now))
    monkeypatch.setattr(Exporter, "export", slowly)
    original, *candidates = superoptimized("mla_decode", split="inputs", seconds=0.5)
    # The first is a copy of the original, and one is still begun at 0.4 seconds.
    assert len(candidates) == 4
    assert 'stopped_by = ["seconds=0.5"]' in str(original.attributes[SEARCH])


def test_an_operator_without_field_meaning_is_refused_by_name(
    superoptimized: Load, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Silu, "interpret", classmethod(Operator.interpret.__func__))
    message = "graph @swiglu: 'algebra.silu' op: has no meaning in a finite field"
    with pytest.raises(PassFailedException, match=message):
        superoptimized("swiglu")


def test_a_graph_that_always_divides_by_zero_is_refused(
    parse_ir: Callable[[str], ModuleOp],
):
    module = parse_ir("""
        algebra.graph @bad [M] (%x: !algebra.tensor<[M], f32>)
            -> (!algebra.tensor<[M], f32>) {
          %zero = algebra.sub %x, %x
          %y = algebra.div %x, %zero
          algebra.return %y
        }""")
    with pytest.raises(PassFailedException, match="graph @bad: division by zero"):
        SuperoptimizePass().apply(Context(), module)


def test_a_graph_that_is_split_already(
    superoptimized: Load, parse_ir: Callable[[str], ModuleOp]
):
    *_, split = superoptimized("mha", split="inputs")
    split.attributes.clear()
    module = ModuleOp([split.clone()])
    SuperoptimizePass().apply(Context(), module)
    module.verify()
    original, *candidates = (op for op in module.ops if isinstance(op, GraphOp))
    assert len(candidates) > 1
    reference = Reference(original, sizes_of(original))
    assert all(reference.equals(c, sizes_of(c)) for c in candidates)


BAD = {
    "concrete": (
        "(%x: !algebra.tensor<[4, K], f32>) -> (!algebra.tensor<[4, K], f32>) {"
        "%y = algebra.exp %x algebra.return %y }",
        "dim 0 of input x is the number 4; run symbolize first",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_searched_is_refused(
    parse_ir: Callable[[str], ModuleOp], name: str
):
    text, message = BAD[name]
    module = parse_ir(f"algebra.graph @bad [M, K] {text}")
    before = str(module)
    with pytest.raises(PassFailedException, match=message):
        SuperoptimizePass().apply(Context(), module)
    assert str(module) == before


FINE = {
    "no reducible dim": (
        "(%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {"
        "%y = algebra.exp %x algebra.return %y }"
    ),
    "dead input": (
        "(%x: !algebra.tensor<[M, K], f32>, %z: !algebra.tensor<[K, M], f32>)"
        "-> (!algebra.tensor<[M, 1], f32>) {"
        "%y = algebra.reduce_sum %x dim 1 algebra.return %y }"
    ),
    "output that is an input": (
        "(%x: !algebra.tensor<[M, K], f32>)"
        "-> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, K], f32>) {"
        "%y = algebra.reduce_sum %x dim 1 algebra.return %y, %x }"
    ),
    "nothing computed": (
        "(%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {"
        "algebra.return %x }"
    ),
    "one result twice": (
        "(%x: !algebra.tensor<[M, K], f32>)"
        "-> (!algebra.tensor<[M, K], f32>, !algebra.tensor<[M, K], f32>) {"
        "%y = algebra.exp %x algebra.return %y, %y }"
    ),
    "number as result": (
        "() -> (!algebra.tensor<[], f32>) {"
        "%y = algebra.constant 2.0 : !algebra.tensor<[], f32> algebra.return %y }"
    ),
    "square input": (
        "(%x: !algebra.tensor<[M, M], f32>) -> (!algebra.tensor<[M, M], f32>) {"
        "%y = algebra.matmul %x, %x transpose_rhs algebra.return %y }"
    ),
}


@pytest.mark.parametrize("split", ["none", "inputs"])
@pytest.mark.parametrize("name", FINE)
def test_odd_graphs_have_at_least_themselves(
    parse_ir: Callable[[str], ModuleOp], name: str, split: Any
):
    module = parse_ir(f"algebra.graph @odd [M, K] {FINE[name]}")
    SuperoptimizePass(split=split).apply(Context(), module)
    module.verify()
    original, *candidates = (op for op in module.ops if isinstance(op, GraphOp))
    assert candidates
    sizes = sizes_of(original)
    inputs = random_inputs(original, sizes)
    expected = execute_graph(original, inputs, sizes)
    for candidate in candidates:
        results = execute_graph(candidate, inputs, sizes_of(candidate))
        assert relative_difference(results, expected) <= 1e-12
