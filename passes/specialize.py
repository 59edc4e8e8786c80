"""`specialize`: bind the symbols of candidates to sizes, and test them there."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate, names_of, symbol
from cleave.dialects.facts import Fact, FactError
from cleave.dialects.tensor import FactAttr
from cleave.passes.equal_graphs import (
    EQUALS,
    equals,
    have_candidates,
    is_original,
    symbol_names,
    warn,
)
from cleave.passes.final_test import FinalTest, split_counts
from cleave.passes.option_ranges import SEED, Range
from cleave.passes.partitioning.piece import KERNEL
from cleave.passes.scheduling.tiles import fresh_name, parse_tiles
from cleave.passes.uneven_splits import (
    UnevenSplit,
    chunk_of,
    with_chunks,
)

if TYPE_CHECKING:
    pass

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
    and from `sizes`, which reads like `"M=4096 K=64"`. A graph that others equal keeps
    its name, and what it splits itself into as many parts as a symbol says.

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
    counts: Annotated[tuple[int, ...], Range(2)] = ()
    budget: Annotated[int, Range(1)] = 1 << 16
    seed: Annotated[int, SEED] = 7

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        given: dict[str, int] = {}
        for name, size in parse_tiles(self.sizes, "size").items():
            if size is None:
                raise PassFailedException(f"'{name}' is given no size")
            given[name] = size
        graphs = [graph for graph in op.ops if isinstance(graph, GraphOp)]
        symbols = {name for graph in graphs for name in graph.symbol_names}
        for name in given:
            if graphs and name not in symbols:
                known = ", ".join(sorted(symbols)) or "none"
                raise PassFailedException(
                    f"size for '{name}', which is no symbol of a graph (symbols: "
                    f"{known})"
                )
        originals = {
            graph.graph_name: FinalTest(graph, self.budget, self.seed)
            for graph in graphs
            if is_original(graph)
        }
        kept, taken = have_candidates(graphs), symbol_names(op)
        replacements: list[tuple[GraphOp, list[GraphOp]]] = []
        for graph in graphs:
            if graph.graph_name in kept:
                sizes = self._sizes(graph, given)
                specialized = [_bound(graph, graph.graph_name, sizes)]
            else:
                specialized = self._specialized(graph, originals, given, taken)
            replacements.append((graph, specialized))
        for graph, specialized in replacements:
            op.body.block.insert_ops_before(specialized, graph)
            op.body.block.erase_op(graph)

    def _specialized(
        self,
        graph: GraphOp,
        originals: Mapping[str, FinalTest],
        given: Mapping[str, int],
        taken: set[str],
    ) -> list[GraphOp]:
        """The graphs that a graph becomes, with names that are not taken yet."""
        sizes = self._sizes(graph, given)
        test: FinalTest | None = None
        if EQUALS in graph.attributes:
            original = equals(graph)
            if (test := originals.get(original or "")) is None:
                raise PassFailedException(
                    f"graph @{graph.graph_name} says that it equals @{original}, "
                    "which is no original graph of the module"
                )
        specialized: list[GraphOp] = []
        dropped: list[tuple[str, str]] = []
        exact = split_counts(test.graph) if test is not None else {}
        for counts in self._choices_of_counts(graph, sizes, exact, dropped):
            name = _name(graph, counts, taken)
            known = sizes | counts
            try:
                divided, uneven = _with_chunks(graph, known)
            except VerifyException as error:
                dropped.append((name, str(error)))
                continue
            result = _bound(divided, name, known)
            if test is not None:
                tested = test.tested_sizes(result, known, uneven)
                if tested is None:
                    reason = f"it does not equal @{test.graph.graph_name}"
                    dropped.append((name, reason))
                    continue
                result.attributes[TESTED] = DictionaryAttr(
                    {symbol: IntegerAttr(size, i64) for symbol, size in tested.items()}
                )
            specialized.append(result)
        if not specialized and is_original(graph):
            raise PassFailedException("graph @{}: {}".format(*dropped[0]))
        for name, reason in dropped:
            warn(self.name, f"graph @{name} is dropped: {reason}")
        return specialized

    def _sizes(self, graph: GraphOp, given: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a graph's symbols other than its split counts."""
        facts, counts = graph.facts, set(split_counts(graph))
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
        self,
        graph: GraphOp,
        sizes: Mapping[str, int],
        exact: Container[str],
        dropped: list[tuple[str, str]],
    ) -> Iterator[dict[str, int]]:
        """
        Every way to choose counts for the splits that have none; `exact` are those that
        have to divide. Adds to `dropped` where there is none.
        """
        splits = {s: d for s, d in split_counts(graph).items() if s not in sizes}
        if not splits:
            yield {}
            return
        if KERNEL in graph.attributes:
            raise PassFailedException(
                f"graph @{graph.graph_name} is a piece of a graph whose splits have no "
                "counts; run specialize before partition-split"
            )
        # A part may be split again, so its size has to be known first.
        known = (s for s, dim in splits.items() if names_of(dim) <= sizes.keys())
        if (count := next(known, None)) is None:
            raise PassFailedException(
                f"graph @{graph.graph_name}: the split counts {', '.join(splits)} "
                "divide what depends on themselves"
            )
        extent = evaluate(splits[count], sizes)
        wanted = [
            n
            for n in range(2, extent // 2 + 1)
            if (n in self.counts if self.counts else _is_usual(n, extent))
            and (
                extent % n == 0
                or (count not in exact and chunk_of(extent, n) is not None)
            )
        ]
        if not wanted:
            reason = f"no count divides {splits[count]}, which is {extent}"
            dropped.append((graph.graph_name, reason))
        for n in wanted:
            further = {**sizes, count: n}
            for rest in self._choices_of_counts(graph, further, exact, dropped):
                yield {count: n, **rest}


def _name(graph: GraphOp, counts: Mapping[str, int], taken: set[str]) -> str:
    """
    The name of a graph with counts, such as `scores_2_s4`; a symbol that ends in a
    digit is told apart from its count. The name becomes taken.
    """
    if not counts:
        return graph.graph_name
    parts = (f"{s}_{n}" if s[-1].isdigit() else f"{s}{n}" for s, n in counts.items())
    name = fresh_name("_".join([graph.graph_name, *parts]), taken)
    taken.add(name)
    return name


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
    for count, dim in split_counts(graph).items():
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
