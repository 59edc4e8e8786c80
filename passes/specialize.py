"""`specialize`: bind the symbols of candidates to sizes, and test them there."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    i64,
)
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate, names_of, symbol
from cleave.passes.equal_graphs import (
    EQUALS,
    equals,
    have_candidates,
    is_original,
    symbol_names,
)
from cleave.passes.final_test import FinalTest, Original
from cleave.passes.option_ranges import SEED, Range
from cleave.passes.partitioning.piece import KERNEL
from cleave.passes.pass_warnings import warn
from cleave.passes.scheduling.tiles import fresh_name, parse_tiles
from cleave.passes.split_choices import (
    SplitForm,
    bound,
    name_with,
    split_counts,
    uneven_counts,
)
from cleave.passes.uneven_splits import chunk_of

TESTED = "tested"
"""The attribute of a graph that says at what sizes it was tested at last."""


@dataclass(frozen=True)
class SpecializePass(ModulePass):
    """
    Give every candidate its original shapes again, and its splits all valid counts
    (paper section 4, recovering the original shapes).

    Counts are `counts`, or the proper divisors of the split dims and powers of two, as
    far as they make no more than `most_parts` parts (if it is not 0) of no less than
    `least_part` positions. Counts that do not divide a dim make parts of a chunk each,
    a multiple of 64 or 128, of which the last is not full and none is empty; reductions
    are masked where that matters. Sizes and counts are bound as facts, types stay
    symbolic. Sizes come from the graph's facts and from `sizes`, which reads like
    `"M=4096 K=64"`. A graph that others equal keeps its name, and what it splits itself
    into as many parts as a symbol says.

    A candidate with splits becomes one graph for each combination of counts. With
    `apart=false` those which divide the same of its dims stay together in one graph,
    which has no facts about them, but the attribute `choices`.

    Each result is tested once more against the graph that it equals, by fingerprints,
    or with numbers where a count does not divide, on the original shapes or, if a
    tensor would then have more than `budget` elements, with sizes halved until none
    has; what fails is dropped. By default a test costs a few milliseconds. It is as
    strong as on the original shapes: inputs are random, and two rational functions of
    degree d that differ agree with a probability of (d / 2^30)^2 an element.
    The attribute `tested` gives the sizes. Counts that stay
    together are tested at the smallest and at the largest: all of them mean one graph,
    whose types and parameters are symbolic, so that what is wrong with it could only
    be hidden by the numbers that are put in.

    Before:
        algebra.graph @scores_2 [M, N, K, s] where [M = 64, N = 64, K = 8, s | K] ...
            attributes {equals = @scores, ...} { ... }
    After:
        algebra.graph @scores_2_s2 [M, N, K, s]
            where [M = 64, N = 64, K = 8, s | K, s = 2] ...
            attributes {equals = @scores, ..., tested = [{...}]} { ... }
        algebra.graph @scores_2_s4 [M, N, K, s]
            where [M = 64, N = 64, K = 8, s | K, s = 4] ...
    After `apart=false`:
        algebra.graph @scores_2 [M, N, K, s] where [M = 64, N = 64, K = 8, s | K] ...
            attributes {choices = {s = array<i64: 2, 4>}, equals = @scores, ...,
                        tested = [{..., s = 2 : i64}, {..., s = 4 : i64}]} { ... }
    """

    name = "specialize"

    sizes: str = ""
    counts: Annotated[tuple[int, ...], Range(2)] = ()
    most_parts: Annotated[int, Range(0)] = 0
    least_part: Annotated[int, Range(1)] = 1
    apart: bool = True
    budget: Annotated[int, Range(1)] = 1 << 13
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
            graph.graph_name: Original(graph, self.budget, self.seed)
            for graph in graphs
            if is_original(graph)
        }
        kept, taken = have_candidates(graphs), symbol_names(op)
        replacements: list[tuple[GraphOp, list[GraphOp]]] = []
        for graph in graphs:
            if graph.graph_name in kept:
                sizes = self._sizes(graph, given)
                specialized = [bound(graph, graph.graph_name, sizes)]
            else:
                specialized = self._specialized(graph, originals, given, taken)
            replacements.append((graph, specialized))
        for graph, specialized in replacements:
            op.body.block.insert_ops_before(specialized, graph)
            op.body.block.erase_op(graph)

    def _specialized(
        self,
        graph: GraphOp,
        originals: Mapping[str, Original],
        given: Mapping[str, int],
        taken: set[str],
    ) -> list[GraphOp]:
        """The graphs that a graph becomes, with names that are not taken yet."""
        sizes = self._sizes(graph, given)
        original: Original | None = None
        if EQUALS in graph.attributes:
            original = originals.get(equals(graph) or "")
            if original is None:
                raise PassFailedException(
                    f"graph @{graph.graph_name} says that it equals "
                    f"{graph.attributes[EQUALS]}, which is no original graph of the "
                    "module"
                )
        specialized: list[GraphOp] = []
        dropped: list[tuple[str, str]] = []
        exact = split_counts(original.graph) if original is not None else {}
        for group in self._groups(graph, sizes, exact, dropped):
            name = self._name(graph, group, sizes, taken)
            try:
                form = SplitForm.of(graph, group, sizes)
            except VerifyException as error:
                dropped.append((name, str(error)))
                continue
            if self.apart:
                result = bound(form.graph, name, sizes | form.choices[0])
            else:
                result = form.together(name, sizes)
            if original is not None:
                test = FinalTest(original, form.graph, form.uneven)
                ends = [form.choices[0], *form.choices[1:][-1:]]
                found = [test.tested_sizes(sizes | choice) for choice in ends]
                tested = [each for each in found if each is not None]
                if len(tested) < len(found):
                    reason = f"it does not equal @{original.graph.graph_name}"
                    dropped.append((name, reason))
                    continue
                result.attributes[TESTED] = ArrayAttr(map(_sizes_attribute, tested))
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

    def _groups(
        self,
        graph: GraphOp,
        sizes: dict[str, int],
        exact: Container[str],
        dropped: list[tuple[str, str]],
    ) -> list[list[dict[str, int]]]:
        """Counts that stay together: those that divide the same dims, or one choice."""
        choices = list(self._choices_of_counts(graph, sizes, exact, dropped))
        if self.apart:
            return [[choice] for choice in choices]
        groups: dict[tuple[str, ...], list[dict[str, int]]] = {}
        for choice in choices:
            groups.setdefault(uneven_counts(graph, sizes | choice), []).append(choice)
        return list(groups.values())

    def _choices_of_counts(
        self,
        graph: GraphOp,
        sizes: dict[str, int],
        exact: Container[str],
        dropped: list[tuple[str, str]],
    ) -> Iterator[dict[str, int]]:
        """
        Every way to choose counts for the splits that have none, ascending; `exact` are
        those that have to divide. Adds to `dropped` where there is none.
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
        dividing = [
            n
            for n in range(2, extent + 1)
            if (n in self.counts if self.counts else _is_usual(n, extent))
            and (
                extent % n == 0
                or (count not in exact and chunk_of(extent, n) is not None)
            )
        ]
        least, most = max(2, self.least_part), self.most_parts or extent
        wanted = [n for n in dividing if n <= min(most, extent // least)]
        # A candidate whose parts would be too small is not worth a word.
        if not wanted and (self.least_part <= 2 or is_original(graph)):
            dim = f"{splits[count]}, which is {extent}"
            reason = f"no count divides {dim}"
            if dividing and dividing[0] > most:
                reason = (
                    f"{dividing[0]} parts of {dim}, are more than most-parts={most}"
                )
            elif dividing:
                reason = (
                    f"{dividing[0]} parts of {dim}, have fewer than {least} positions"
                )
            dropped.append((graph.graph_name, reason))
        for n in wanted:
            further = {**sizes, count: n}
            for rest in self._choices_of_counts(graph, further, exact, dropped):
                yield {count: n, **rest}

    def _name(
        self,
        graph: GraphOp,
        group: Sequence[dict[str, int]],
        sizes: dict[str, int],
        taken: set[str],
    ) -> str:
        """The name of what a graph becomes with these counts. It becomes taken."""
        name = graph.graph_name
        if not group[0]:
            return name
        if self.apart:
            name = name_with(name, group[0])
        elif uneven := uneven_counts(graph, sizes | group[0]):
            name = "_".join([name, *uneven])
        else:
            return name
        name = fresh_name(name, taken)
        taken.add(name)
        return name


def _sizes_attribute(sizes: Mapping[str, int]) -> DictionaryAttr:
    return DictionaryAttr({name: IntegerAttr(n, i64) for name, n in sizes.items()})


def _is_usual(count: int, extent: int) -> bool:
    """Whether a count is tried if none are given."""
    return count < extent and (extent % count == 0 or count & (count - 1) == 0)
