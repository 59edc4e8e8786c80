"""
Selection: the fastest plans of everything that computes the same.

Candidates are whole graphs and sequences of pieces (cut at splits or at reductions),
each with the schedules of its kernels. They compete in one ranking: a sequence takes as
long as its kernels and their launches together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import SymbolicDim
from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.fold_broadcast import fold_broadcast
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partition_reductions import CUTS
from cleave.passes.partitioning.composition import compose
from cleave.passes.partitioning.piece import piece_of
from cleave.passes.scheduling.ranking import (
    KernelSchedule,
    Pruned,
    Ranked,
    Search,
    rank,
)
from cleave.passes.sink_scales import sink_scales
from cleave.passes.superoptimize.superoptimize import EQUALS

MOST_COMBINATIONS = 64
"""Of the schedules of the kernels of one sequence."""
NEAR = 1.3
"""How much slower than the best a kind of plan may be to be tried all the same: the
model errs more between kinds than between tiles."""
OF_ONE_TILE = 2
"""Plans that differ only in their launches."""


@dataclass(frozen=True)
class Candidate:
    """Graphs that run one after another, and how each is scheduled."""

    graphs: tuple[GraphOp, ...]
    """With casts, broadcasts folded; pieces in order, or one whole graph."""
    schedules: tuple[KernelSchedule, ...]
    seconds: float
    """By the model, launches included, as `cleave.lowering.timing` measures."""

    @property
    def kind(self) -> tuple[object, ...]:
        """Between kinds of plans the model errs more than within one."""
        forms = [(s.form, s.launch.specialization, s.warps) for s in self.schedules]
        return (len(self.graphs), *forms[:1], *self.graphs[0].facts.binding.items())

    @property
    def tiles(self) -> tuple[object, ...]:
        """The graph and its tile sizes, whatever the launches."""
        sizes = [(*s.blocks.items(), *s.reductions.items()) for s in self.schedules]
        return (self.graphs[0], *sizes)

    def plan(self, search: Search) -> PlanOp:
        """
        The planned tile program of all kernels.

        Raises PassFailedException for what only sizes with values show to be wrong.
        """
        plans = [
            schedule.plan(graph, search)
            for graph, schedule in zip(self.graphs, self.schedules, strict=True)
        ]
        plan = compose(plans) if piece_of(plans[0]) is not None else plans[0]
        try:
            plan.verify()
        except VerifyException as error:
            raise PassFailedException(str(error)) from error
        return plan


@dataclass
class Selection:
    """The candidates for one graph, the fastest first, and what was left out."""

    candidates: list[Candidate] = field(default_factory=list[Candidate])
    pruned: Pruned = field(default_factory=Pruned)


def select(graphs: Iterable[GraphOp], search: Search) -> dict[str, Selection]:
    """
    The candidates for each graph that the given ones are, equal or are pieces of.

    Graphs are symbolic, with sizes bound; they stay as they are.

    Raises ValueError for an attribute `kernel` that does not read as one.
    """
    kernels = _Kernels(search)
    sequences = _sequences(graphs)
    for sequence in sequences:
        for graph in sequence:
            kernels.prepare(graph)
    kernels.rank()
    selections: dict[str, Selection] = {}
    for sequence in sequences:
        selection = selections.setdefault(_target(sequence[0]), Selection())
        ranked = [kernels.ranked(graph) for graph in sequence]
        for _, pruned in ranked:
            selection.pruned.add(pruned)
        prepared = tuple(kernels.prepared[graph] for graph in sequence)
        selection.candidates += _combined(
            prepared, [schedules for schedules, _ in ranked], search
        )
    for selection in selections.values():
        selection.candidates.sort(key=lambda each: each.seconds)
    return selections


def varied(candidates: Sequence[Candidate], count: int) -> Iterator[Candidate]:
    """
    Candidates in the order in which to try them: first the best of each kind that comes
    near the best of all, as many kinds as half of `count`, then the fastest that are
    not too much alike.
    """
    if not candidates:
        return
    firsts: dict[tuple[object, ...], Candidate] = {}
    for candidate in candidates:
        if candidate.seconds <= NEAR * candidates[0].seconds:
            firsts.setdefault(candidate.kind, candidate)
    chosen = list(firsts.values())[: max(1, count // 2)]
    yield from chosen
    alike = Counter(candidate.tiles for candidate in chosen)
    for candidate in candidates:
        if candidate not in chosen and alike[candidate.tiles] < OF_ONE_TILE:
            alike[candidate.tiles] += 1
            yield candidate


def _sequences(graphs: Iterable[GraphOp]) -> list[list[GraphOp]]:
    """Whole graphs alone, pieces of one graph together."""
    pieces: dict[str, list[GraphOp]] = {}
    for graph in graphs:
        piece = piece_of(graph)
        name = graph.graph_name if piece is None else f"pieces of {piece.of}"
        pieces.setdefault(name, []).append(graph)
    return [sorted(group, key=_number) for group in pieces.values()]


def _number(graph: GraphOp) -> int:
    piece = piece_of(graph)
    return 0 if piece is None else piece.number


def _target(graph: GraphOp) -> str:
    """The name of the graph that a candidate computes."""
    piece = piece_of(graph)
    attributes = graph.attributes if piece is None else piece.whole
    for name in (EQUALS, CUTS):
        if isinstance(target := attributes.get(name), SymbolRefAttr):
            return target.string_value()
    return graph.graph_name if piece is None else piece.of


def _combined(
    graphs: tuple[GraphOp, ...],
    schedules: Sequence[Sequence[KernelSchedule]],
    search: Search,
) -> Iterator[Candidate]:
    """The candidates of a sequence, from the best schedules of its kernels."""
    hardware = search.hardware
    launches = hardware.launch_seconds
    launches += (len(graphs) - 1) * hardware.next_launch_seconds
    kept = [list(each) for each in schedules]
    while len(kept) > 1 and prod(map(len, kept)) > MOST_COMBINATIONS:
        max(kept, key=len).pop()
    for combination in product(*kept):
        seconds = sum(schedule.seconds for schedule in combination)
        yield Candidate(graphs, combination, launches + seconds)


################################################################################
# Kernels                                                                      #
################################################################################


@dataclass
class _Kernels:
    """
    The graphs to rank. Those that differ only in their split counts are ranked at once,
    the counts being one more size that a configuration has.
    """

    search: Search
    prepared: dict[GraphOp, GraphOp] = field(default_factory=dict[GraphOp, GraphOp])
    groups: dict[str, _Group] = field(default_factory=lambda: {})
    of: dict[GraphOp, tuple[str, tuple[int, ...]]] = field(
        default_factory=dict[GraphOp, tuple[str, tuple[int, ...]]]
    )

    def prepare(self, graph: GraphOp) -> None:
        ready = graph.clone()
        insert_casts(ready)
        ready = fold_broadcast(ready)
        sink_scales(ready)
        self.prepared[graph] = ready
        opened, counts = _opened(ready)
        text = str(opened)
        group = self.groups.setdefault(text, _Group(opened, tuple(counts)))
        key = tuple(counts.values())
        group.keys[key] = None
        self.of[graph] = (text, key)

    def rank(self) -> None:
        for group in self.groups.values():
            columns = list(zip(*group.keys, strict=True))
            counts = dict(zip(group.counts, columns, strict=True))
            group.ranked = rank(group.graph, counts, self.search)

    def ranked(self, graph: GraphOp) -> tuple[Sequence[KernelSchedule], Pruned]:
        text, key = self.of[graph]
        ranked = cast(Ranked, self.groups[text].ranked)
        return ranked.schedules[key], ranked.pruned[key]


@dataclass
class _Group:
    graph: GraphOp
    counts: tuple[str, ...]
    keys: dict[tuple[int, ...], None] = field(
        default_factory=dict[tuple[int, ...], None]
    )
    ranked: Ranked | None = None


def _opened(graph: GraphOp) -> tuple[GraphOp, Mapping[str, int]]:
    """A graph without a name and without values for split counts, and the values."""
    facts = [fact.data for fact in graph.where]
    binding = graph.facts.binding
    counts = {
        str(fact.lhs): value
        for fact in facts
        if fact.relation == "|"
        and isinstance(fact.lhs, SymbolicDim)
        and isinstance(value := binding.get(str(fact.lhs)), int)
    }
    opened = graph.clone()
    opened.sym_name = StringAttr("graph")
    opened.attributes.clear()
    opened.where = ArrayAttr(
        attribute
        for attribute in graph.where
        if attribute.data.relation != "=" or str(attribute.data.lhs) not in counts
    )
    return opened, counts
