"""
The pruned search against one that prunes nothing: they find the same graphs.

The unpruned search enumerates all sets of values that can be computed one after the
other; only equal values are merged. What takes the pruned search milliseconds takes it
seconds, so graphs are small.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import TypeAlias

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.contraction import Matmul, ReduceSum
from cleave.dialects.algebra.elementwise import Mul
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.closure import Closure
from cleave.passes.superoptimize.derivations import Derivations
from cleave.passes.superoptimize.extraction import Extraction
from cleave.passes.superoptimize.field import FieldValue
from cleave.passes.superoptimize.graph import SearchGraph, Step, view_leaf
from cleave.passes.superoptimize.importing import Imported, import_graph
from cleave.passes.superoptimize.limits import Clock, Limits
from cleave.passes.superoptimize.sampling import Sample, draw
from cleave.passes.superoptimize.semantics import Shape, Undefined

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPANIONS = (Matmul, Mul, ReduceSum)

Values: TypeAlias = frozenset[int]


class Unpruned:
    """All values that operators give, whether or not they can be of use."""

    def __init__(self, graph: SearchGraph, sample: Sample) -> None:
        self.field = sample.field
        self.rank = max(map(len, graph.shapes()))
        self.shapes: list[Shape] = []
        self.values: list[FieldValue] = []
        self.numbers: dict[tuple[Shape, bytes], int] = {}
        self.leaves = frozenset(
            self.intern(
                leaf.shape,
                view_leaf(leaf, sample.field, sample.sources[leaf.source]),
            )
            for leaf in graph.leaves
        )
        self.operators: dict[type[Operator], list[Step]] = {op: [] for op in COMPANIONS}
        for node in graph.nodes:
            self.operators.setdefault(node.step.operator, []).append(node.step)
        self.reducible = {
            dim for node in graph.nodes for dim in node.step.reduced(node.shapes)
        }
        self.results: dict[tuple[int, ...], Values] = {}

    def intern(self, shape: Shape, value: FieldValue) -> int:
        value = value.with_rank(self.rank)
        shape = (1,) * (self.rank - len(shape)) + shape
        number = self.numbers.setdefault((shape, value.p.tobytes()), len(self.values))
        if number == len(self.values):
            self.shapes.append(shape)
            self.values.append(value)
        return number

    def together(self, *operands: int) -> Values:
        """What operators give of exactly these operands, in any order."""
        if (known := self.results.get(operands)) is None:
            orders = dict.fromkeys((operands, operands[::-1]))
            known = self.results[operands] = frozenset(
                result
                for operator in self.operators
                if len(operands) == operator.ARITY
                for order in orders
                for result in self.apply(operator, order)
            )
        return known

    def apply(
        self, operator: type[Operator], operands: tuple[int, ...]
    ) -> Iterator[int]:
        shapes = [self.shapes[operand] for operand in operands]
        values = [self.values[operand] for operand in operands]
        seen = [dict(step.params) for step in self.operators[operator]]
        for params in operator.search_params(shapes, seen):
            step = Step.of(operator, params)
            try:
                shape = step.infer_shape(shapes)
                if set(step.reduced(shapes)) <= self.reducible:
                    result = step.interpret(self.field, values, shapes)
                    yield self.intern(shape, result)
            except (VerifyException, Undefined):
                continue

    def graphs(self, target: int, largest: int) -> set[Values]:
        """The computed values of every graph of the target with `largest` operators."""
        start: set[int] = set()
        for leaf in self.leaves:
            start |= self.together(leaf)
            for other in self.leaves:
                start |= self.together(*sorted((leaf, other)))
        frontier: dict[Values, Values] = {frozenset(): frozenset(start)}
        found: set[Values] = set()
        for size in range(1, largest + 1):
            following: dict[Values, Values] = {}
            for computed, results in frontier.items():
                if target in results and self.uses_all(computed, target):
                    found.add(computed | {target})
                if size == largest:
                    continue
                for value in results - computed - self.leaves - {target}:
                    more = computed | {value}
                    if more not in following:
                        new = set(self.together(value))
                        for other in self.leaves | more:
                            new |= self.together(*sorted((value, other)))
                        following[more] = results | new
            frontier = following
        return found

    def uses_all(self, computed: Values, target: int) -> bool:
        """Whether the target can be computed so that each of the values is used."""
        return any(
            needed == computed for needed in self.needed(target, computed, frozenset())
        )

    def needed(self, value: int, computed: Values, above: Values) -> Iterator[Values]:
        """For each way to compute a value from others, those that it needs."""
        above |= {value}
        available = self.leaves | (computed - above)
        pairs = (pair for pair in product(available, repeat=2) if pair[0] <= pair[1])
        for operands in (*((v,) for v in available), *pairs):
            if value in self.together(*operands):
                direct = frozenset(operands) - self.leaves
                below = [list(self.needed(v, computed, above)) for v in direct]
                for choice in product(*below):
                    yield direct.union(*choice)


def pruned_graphs(
    imported: Imported, sample: Sample, unpruned: Unpruned, largest: int
) -> set[Values]:
    """The same from the search that is under test."""
    closure = Closure(
        imported.graph,
        imported.dims(split=False),
        sample,
        companions=COMPANIONS,
        distribute=True,
    )
    closure.run(Limits(), Clock(60))
    assert closure.stopped_by is None
    derivations = Derivations.of(closure.space, closure.outputs, closure.originals)
    found: set[Values] = set()
    for candidate in Extraction(derivations, Limits(), Clock(60)).graphs(largest):
        values = candidate.evaluate(sample.field, sample.sources)
        shapes = candidate.shapes()
        first = len(candidate.leaves)
        found.add(frozenset(map(unpruned.intern, shapes[first:], values[first:])))
    return found


@pytest.mark.parametrize(
    ("example", "largest", "graphs"),
    [
        ("matmul_matmul", 4, 2),
        ("matmul_rowsum", 4, 2),
        ("swiglu", 5, 1),
        ("mha", 5, 2),
    ],
)
def test_same_graphs_without_pruning(
    parse_ir: Callable[[str], ModuleOp], example: str, largest: int, graphs: int
):
    (graph,) = parse_ir((EXAMPLES / f"{example}.mlir").read_text()).ops
    assert isinstance(graph, GraphOp)
    imported = import_graph(graph)
    extents = imported.dims(split=False).extents(imported.graph.dims(), 2)
    sample = draw(imported.graph, extents, 1)
    unpruned = Unpruned(imported.graph, sample)
    values = imported.graph.evaluate(sample.field, sample.sources)
    (output,) = imported.graph.outputs
    target = unpruned.intern(imported.graph.shapes()[output], values[output])
    found = pruned_graphs(imported, sample, unpruned, largest)
    assert found == unpruned.graphs(target, largest)
    assert len(found) == graphs
