"""
Graphs that look like others but differ: each has to be told apart from its original.

None may pass the final test, and none may be a candidate of its original.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.specialize import SpecializePass
from cleave.passes.superoptimize.equivalence import Reference
from cleave.passes.superoptimize.expressions import Expressions
from cleave.passes.superoptimize.importing import import_graph
from cleave.passes.superoptimize.superoptimize import EQUALS, SuperoptimizePass

EXAMPLES = Path(__file__).parents[2] / "examples"

SOURCE = Path(__file__).with_name("superoptimize_mutants.txt")


@dataclass
class Mutant:
    example: str
    changes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def text(self, original: str) -> str:
        for old, new in self.changes:
            assert old in original
            original = original.replace(old, new)
        return original


def read_mutants() -> dict[str, Mutant]:
    _, *blocks = SOURCE.read_text().strip().split("\n\n")
    mutants: dict[str, Mutant] = {}
    for block in blocks:
        heading, *lines = block.splitlines()
        example, _, name = heading.partition(": ")
        mutant = mutants[name] = Mutant(example)
        for line in lines:
            sign, text = line[0], line[2:]
            if sign == "-":
                mutant.changes.append((text, ""))
            else:
                old, new = mutant.changes.pop()
                mutant.changes.append((old, f"{new}\n{text}" if new else text))
    return mutants


MUTANTS = read_mutants()

SPLIT = """
    algebra.graph @split [H, M, L, D, E, s] where [s | {dim}]
        (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
         %v: !algebra.tensor<[H, L, E], f16>)
        -> (!algebra.tensor<[H, M, E], f16>) {{
      {body}
      algebra.return %o
    }}"""

SPLIT_ORIGINAL = """
      %s = algebra.matmul %q, %k
      %p = algebra.exp %s
      %o = algebra.matmul %p, %v"""

SPLIT_MUTANTS = {
    "exp of parts of a sum": ("D", """
      %qs = algebra.split %q dim 2 count s
      %ks = algebra.split %k dim 1 count s
      %t = algebra.matmul %qs, %ks
      %p = algebra.exp %t
      %u = algebra.matmul %p, %v
      %r = algebra.reduce_sum %u dim 0
      %o = algebra.reshape %r to [H, M, E]"""),
    "maximum over parts": ("L", """
      %ks = algebra.split %k dim 2 count s
      %vs = algebra.split %v dim 1 count s
      %t = algebra.matmul %q, %ks
      %p = algebra.exp %t
      %u = algebra.matmul %p, %vs
      %r = algebra.reduce_max %u dim 0
      %o = algebra.reshape %r to [H, M, E]"""),
    "parts of keys against all values": ("L", """
      %ks = algebra.split %k dim 2 count s
      %vs = algebra.split %v dim 1 count s
      %t = algebra.matmul %q, %ks
      %p = algebra.exp %t
      %pp = algebra.reduce_sum %p dim 0
      %vv = algebra.reduce_sum %vs dim 0
      %u = algebra.matmul %pp, %vv
      %o = algebra.reshape %u to [H, M, E]"""),
}  # fmt: skip

BATCH = """
    algebra.graph @batch [A, B, M, D, E]
        (%q: !algebra.tensor<[A * B, M, D], f16>,
         %k: !algebra.tensor<[A * B, D, E], f16>)
        -> (!algebra.tensor<[A * B, M, E], f16>) {{
      {body}
      algebra.return %o
    }}"""

BATCH_ORIGINAL = "%o = algebra.matmul %q, %k"

BATCH_MUTANT = """
      %qs = algebra.reshape %q to [A, B, M, D]
      %ks = algebra.reshape %k to [A, B, D, E]
      %t = algebra.matmul %qs, %ks
      %u = algebra.transpose %t permutation [1, 0, 2, 3]
      %o = algebra.reshape %u to [A * B, M, E]"""


def load(parse_ir: Callable[[str], ModuleOp], text: str) -> GraphOp:
    module = parse_ir(text)
    module.verify()
    (graph,) = module.ops
    assert isinstance(graph, GraphOp)
    return graph


def sizes_of(graph: GraphOp) -> dict[str, int]:
    return {name: 2 if name == "s" else 4 for name in graph.symbol_names}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_not_equal(parse_ir: Callable[[str], ModuleOp], name: str):
    text = (EXAMPLES / f"{MUTANTS[name].example}.mlir").read_text()
    original = load(parse_ir, text)
    mutant = load(parse_ir, MUTANTS[name].text(text))
    for seed in range(3):
        reference = Reference(original, sizes_of(original), seed)
        assert reference.equals(original, sizes_of(original))
        assert not reference.equals(mutant, sizes_of(mutant))


@pytest.mark.parametrize("name", SPLIT_MUTANTS)
def test_mutants_with_splits_are_not_equal(
    parse_ir: Callable[[str], ModuleOp], name: str
):
    dim, body = SPLIT_MUTANTS[name]
    original = load(parse_ir, SPLIT.format(dim="L", body=SPLIT_ORIGINAL))
    mutant = load(parse_ir, SPLIT.format(dim=dim, body=body))
    reference = Reference(original, sizes_of(original))
    assert not reference.equals(mutant, sizes_of(mutant))


Equals = Callable[[GraphOp, GraphOp, str], bool]


@pytest.fixture
def equals(capsys: pytest.CaptureFixture[str]) -> Equals:
    """Whether `specialize` takes a graph, as in the search, for one that equals it."""

    def check(original: GraphOp, mutant: GraphOp, sizes: str) -> bool:
        is_kept = _is_kept(original, mutant, sizes)
        # One of the mutants has no form in chunks, either.
        reasons = ("it does not equal @", "a value has one part of", "has parts of")
        assert is_kept != any(map(capsys.readouterr().err.__contains__, reasons))
        return is_kept

    return check


def _is_kept(original: GraphOp, mutant: GraphOp, sizes: str) -> bool:
    original.detach()
    mutant.detach()
    mutant.properties["sym_name"] = StringAttr("mutant")
    mutant.attributes[EQUALS] = SymbolRefAttr(original.graph_name)
    module = ModuleOp([original, mutant])
    SpecializePass(sizes=sizes, apart=False, least_part=64).apply(Context(), module)
    return len(module.ops) == 2


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_fail_the_final_test(
    parse_ir: Callable[[str], ModuleOp], equals: Equals, name: str
):
    text = (EXAMPLES / f"{MUTANTS[name].example}.mlir").read_text()
    original = load(parse_ir, text)
    assert not equals(original, load(parse_ir, MUTANTS[name].text(text)), "")


@pytest.mark.parametrize("name", SPLIT_MUTANTS)
@pytest.mark.parametrize("extent", [1024, 1031])
def test_mutants_with_splits_fail_the_final_test(
    parse_ir: Callable[[str], ModuleOp], equals: Equals, name: str, extent: int
):
    """Also in chunks, of a dim that nothing divides."""
    sizes = f"H=8 M=256 L={extent} D={extent} E=64"
    dim, body = SPLIT_MUTANTS[name]
    mutant = SPLIT.format(dim=dim, body=body)
    original = SPLIT.format(dim="L", body=SPLIT_ORIGINAL)
    # Counts of the original would have to divide.
    original = original.replace(", s] where [s | L]", "]")
    assert equals(load(parse_ir, original), load(parse_ir, original), sizes)
    assert not equals(load(parse_ir, original), load(parse_ir, mutant), sizes)


def test_a_batch_dim_put_together_in_another_order(
    parse_ir: Callable[[str], ModuleOp],
):
    original = load(parse_ir, BATCH.format(body=BATCH_ORIGINAL))
    mutant = load(parse_ir, BATCH.format(body=BATCH_MUTANT))
    reference = Reference(original, sizes_of(original))
    assert reference.equals(original, sizes_of(original))
    assert not reference.equals(mutant, sizes_of(mutant))


@pytest.mark.parametrize(
    "example", sorted({mutant.example for mutant in MUTANTS.values()})
)
def test_mutants_are_no_candidates(parse_ir: Callable[[str], ModuleOp], example: str):
    """The search itself never takes a mutant for its original."""
    source = (EXAMPLES / f"{example}.mlir").read_text()
    module = parse_ir(source)
    SuperoptimizePass(split="inputs", graphs=200).apply(Context(), module)
    expressions = Expressions()
    candidates = {
        expressions.of_outputs(import_graph(graph).graph)
        for graph in module.ops
        if isinstance(graph, GraphOp)
    }
    for mutant in MUTANTS.values():
        if mutant.example == example:
            graph = import_graph(load(parse_ir, mutant.text(source))).graph
            assert expressions.of_outputs(graph) not in candidates


def test_there_are_enough_mutants():
    assert len(MUTANTS) + len(SPLIT_MUTANTS) >= 30
