"""`specialize`: bind the symbols of candidates to sizes, and test them there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException
from xdsl.utils.hints import isa

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, evaluate, names_of, symbol
from cleave.dialects.facts import Fact, FactError
from cleave.dialects.tensor import FactAttr, TensorType
from cleave.passes.scheduling.tiles import fresh_name, parse_tiles
from cleave.passes.superoptimize.superoptimize import EQUALS
from cleave.passes.uneven_splits import (
    UnevenSplit,
    chunk_of,
    same_numbers,
    with_chunks,
)

if TYPE_CHECKING:
    from cleave.passes.superoptimize.equivalence import Reference

_SMALL = 64
"""A budget so small that inputs can be drawn for which square roots are roots."""

TESTED = "tested"
"""The attribute of a graph that says at what sizes it was tested at last."""


@dataclass(frozen=True)
class SpecializePass(ModulePass):
    """
    Give every candidate its original shapes again, and its splits all valid counts
    (paper section 4, recovering the original shapes).

    A candidate with splits becomes one graph for each combination of counts: `counts`,
    or the proper divisors of the split dims and powers of two. Counts that do not
    divide a dim make parts of a chunk each, a multiple of 64 or 128, of which the last
    is not full and none is empty; reductions are masked where that matters. Sizes and
    counts are bound as facts, types stay symbolic. Sizes come from the graph's facts
    and from `sizes`, which reads like `"M=4096 K=64"`.

    Each result is tested once more against the graph that it equals, by fingerprints,
    or with numbers where a count does not divide, on the original shapes or, if no
    tensor may then have more than `budget` elements, with sizes halved until that is
    so; what fails is dropped. The attribute `tested` gives the sizes.

    Before:
        algebra.graph @scores_2 [M, N, K, s] where [M = 64, N = 64, K = 8, s | K] ...
            attributes {equals = @scores, ...} { ... }
    After:
        algebra.graph @scores_2_s2 [M, N, K, s]
            where [M = 64, N = 64, K = 8, s | K, s = 2] ...
            attributes {equals = @scores, ..., tested = {...}} { ... }
        algebra.graph @scores_2_s4 [M, N, K, s]
            where [M = 64, N = 64, K = 8, s | K, s = 4] ...
    """

    name = "specialize"

    sizes: str = ""
    counts: tuple[int, ...] = ()
    budget: int = 1 << 16
    seed: int = 7

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        given: dict[str, int] = {}
        for name, size in parse_tiles(self.sizes).items():
            if size is None:
                raise PassFailedException(f"'{name}' is given no size")
            given[name] = size
        graphs = [graph for graph in op.ops if isinstance(graph, GraphOp)]
        originals = {
            graph.graph_name: _FinalTest(graph, self.budget, self.seed)
            for graph in graphs
            if EQUALS not in graph.attributes
        }
        replacements = [
            (graph, list(self._specialized(graph, originals, given)))
            for graph in graphs
        ]
        for graph, specialized in replacements:
            op.body.block.insert_ops_before(specialized, graph)
            op.body.block.erase_op(graph)

    def _specialized(
        self,
        graph: GraphOp,
        originals: Mapping[str, _FinalTest],
        given: Mapping[str, int],
    ) -> Iterator[GraphOp]:
        """The graphs that a graph becomes."""
        sizes = self._sizes(graph, given)
        equals = graph.attributes.get(EQUALS)
        test = (
            originals.get(equals.string_value()) if isa(equals, SymbolRefAttr) else None
        )
        for counts in self._choices_of_counts(graph, sizes):
            name = "_".join([graph.graph_name, *(f"{s}{n}" for s, n in counts.items())])
            known = sizes | counts
            try:
                divided, uneven = _with_chunks(graph, known)
            except VerifyException as error:
                print(
                    f"warning: pass '{self.name}': graph @{name} is dropped: {error}",
                    file=sys.stderr,
                )
                continue
            result = _bound(divided, name, known)
            if test is not None:
                tested = test.tested_sizes(result, known, uneven)
                if tested is None:
                    print(
                        f"warning: pass '{self.name}': graph @{name} is dropped: "
                        f"it does not equal @{test.graph.graph_name}",
                        file=sys.stderr,
                    )
                    continue
                result.attributes[TESTED] = DictionaryAttr(
                    {symbol: IntegerAttr(size, i64) for symbol, size in tested.items()}
                )
            yield result

    def _sizes(self, graph: GraphOp, given: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a graph's symbols other than its split counts."""
        facts, counts = graph.facts, set(_split_counts(graph))
        sizes: dict[str, int] = {}
        for name in graph.symbol_names:
            known = facts.resolve(symbol(name))
            if isinstance(known, int):
                if given.get(name, known) != known:
                    raise PassFailedException(
                        f"symbol {name} of graph @{graph.graph_name} is "
                        f"{known} by its facts, not {given[name]}"
                    )
                sizes[name] = known
            elif name in given:
                sizes[name] = given[name]
            elif name not in counts:
                raise PassFailedException(
                    f"symbol {name} of graph @{graph.graph_name} has no "
                    f'size; state it as a fact or pass sizes="{name}=..."'
                )
        return sizes

    def _choices_of_counts(
        self, graph: GraphOp, sizes: Mapping[str, int]
    ) -> Iterator[dict[str, int]]:
        """Every way to choose counts for the splits that have none."""
        splits = {s: d for s, d in _split_counts(graph).items() if s not in sizes}
        choices: list[list[int]] = []
        for dim in splits.values():
            extent = evaluate(dim, sizes)
            wanted = [
                n
                for n in range(2, extent // 2 + 1)
                if (n in self.counts if self.counts else _is_usual(n, extent))
                and (extent % n == 0 or chunk_of(extent, n) is not None)
            ]
            if not wanted:
                print(
                    f"warning: pass '{self.name}': graph @{graph.graph_name} is "
                    f"dropped: no count divides {dim}, which is {extent}",
                    file=sys.stderr,
                )
            choices.append(wanted)
        for choice in product(*choices):
            yield dict(zip(splits, choice, strict=True))


class _FinalTest:
    """An original graph, against which candidates are tested at various sizes."""

    def __init__(self, graph: GraphOp, budget: int, seed: int) -> None:
        self.graph = graph
        self.budget = budget
        self.seed = seed
        self._references: dict[tuple[tuple[str, int], ...], Reference] = {}

    def tested_sizes(
        self,
        graph: GraphOp,
        sizes: Mapping[str, int],
        uneven: Sequence[UnevenSplit] = (),
    ) -> dict[str, int] | None:
        """The sizes at which a graph equals the original, if it does."""
        if uneven:
            # Zeros beyond an end and minus infinity are no elements of a field.
            tested = self._sizes_within(self.budget, graph, sizes, uneven)
            return tested if same_numbers(self.graph, graph, tested) else None
        for budget in (self.budget, _SMALL):
            tested = self._sizes_within(budget, graph, sizes)
            reference = self._reference(tested)
            if reference.equals(graph, tested):
                return tested
            if reference.roots_hold:
                break
            # On large tensors roots have signs, by which equal graphs may differ.
        return None

    def _reference(self, sizes: Mapping[str, int]) -> Reference:
        from cleave.passes.superoptimize.equivalence import Reference

        own = {name: sizes[name] for name in self.graph.symbol_names}
        key = tuple(own.items())
        if key not in self._references:
            self._references[key] = Reference(self.graph, own, self.seed)
        return self._references[key]

    def _sizes_within(
        self,
        budget: int,
        graph: GraphOp,
        sizes: Mapping[str, int],
        uneven: Sequence[UnevenSplit] = (),
    ) -> dict[str, int]:
        """
        Sizes at which no tensor has more elements than the budget allows: the given
        ones, the largest halved as often as needed, counts as they are. Chunks become
        what holds the halved dim, and more.
        """
        shrunk = dict(sizes)
        counts = _split_counts(graph)
        fixed = {*counts, *(name for s in uneven for name in (s.count, s.chunk))}
        shapes = {
            cast(TensorType, value.type).dims
            for tested in (self.graph, graph)
            for op in tested.operators
            for value in (*op.operands, *op.results)
        }
        while any(
            prod(evaluate(dim, shrunk) for dim in shape) > budget for shape in shapes
        ):
            for name in sorted(sizes, key=shrunk.__getitem__, reverse=True):
                divisor = lcm(
                    *(sizes[s] for s, dim in counts.items() if name in names_of(dim))
                )
                half = shrunk[name] // 2 // divisor * divisor
                if name not in fixed and half:
                    shrunk[name] = half
                    for split in uneven:
                        if split.extent == name:
                            shrunk[split.chunk] = half // sizes[split.count] + 1
                    break
            else:
                break
        return shrunk


def _split_counts(graph: GraphOp) -> dict[str, Dim]:
    """The counts by which a graph splits, with the dims that they divide."""
    return {
        str(fact.lhs): fact.rhs
        for fact in graph.facts
        if fact.relation == "|" and str(fact.lhs) in graph.symbol_names
    }


def _is_usual(count: int, extent: int) -> bool:
    """Whether a count is tried if none are given."""
    return extent % count == 0 or count & (count - 1) == 0


def _with_chunks(
    graph: GraphOp, sizes: dict[str, int]
) -> tuple[GraphOp, list[UnevenSplit]]:
    """
    The graph with chunks where counts do not divide, and these splits; their chunks
    join the sizes. Raises VerifyException if the graph has no such form.
    """
    uneven: list[UnevenSplit] = []
    for count, dim in _split_counts(graph).items():
        extent = evaluate(dim, sizes)
        if extent % sizes[count] == 0:
            continue
        chunk = chunk_of(extent, sizes[count])
        if chunk is None:
            raise VerifyException(
                f"{sizes[count]} parts of {dim}, which is {extent}, leave one empty"
            )
        if str(dim) not in graph.symbol_names:
            raise VerifyException(f"count {count} does not divide {dim}, no symbol")
        split = UnevenSplit(str(dim), count, fresh_name("C", graph.symbol_names))
        sizes[split.chunk] = chunk
        uneven.append(split)
        graph = with_chunks(graph, split)
    return graph, uneven


def _bound(graph: GraphOp, name: str, sizes: Mapping[str, int]) -> GraphOp:
    """A copy of a graph with its symbols bound to sizes."""
    facts = graph.facts
    new = [
        Fact(symbol(s), "=", size)
        for s, size in sizes.items()
        if facts.resolve(symbol(s)) != size
    ]
    try:
        facts.extend(*new).check()
    except FactError as error:
        raise PassFailedException(f"graph @{graph.graph_name}: {error}") from error
    copy = graph.clone()
    copy.properties["sym_name"] = StringAttr(name)
    copy.properties["where"] = ArrayAttr([*graph.where, *map(FactAttr, new)])
    return copy
