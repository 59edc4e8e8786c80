"""
Selection: the fastest plans of everything that computes the same.

Candidates are whole graphs and sequences of pieces (cut at splits or at reductions),
each with the schedules of its kernels. They compete in one ranking: a sequence takes as
long as its kernels and their launches together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import log, prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, SymbolicDim, names_of
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import FactAttr
from cleave.lowering.hardware import Hardware
from cleave.passes.equal_graphs import equals, named_by
from cleave.passes.expand_vector_products import expand_vector_products
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
from cleave.passes.split_choices import CHOICES, choices_of, chosen
from cleave.passes.substitute_facts import substitute_in

MOST_COMBINATIONS = 64
"""Of the schedules of the kernels of one sequence."""
NEAR = 1.3
"""How much slower than the best a kind of plan may be to be tried all the same: the
model errs more between kinds than between tiles."""
ALIKE = 2
"""Plans to try that differ only in what makes them alike."""
SAME = 0.02
"""Times that differ by less may come from one and the same structure."""


@dataclass(frozen=True)
class Candidate:
    """Graphs that run one after another, and how each is scheduled."""

    graphs: tuple[GraphOp, ...]
    """Pieces in order, or one whole graph; their split counts may be left open."""
    counts: Mapping[str, int]
    """Their split counts, and chunks that are left open like them."""
    schedules: tuple[KernelSchedule, ...]
    seconds: float
    """By the model, launches included, as `cleave.lowering.timing` measures."""

    @property
    def kind(self) -> tuple[object, ...]:
        """Between kinds of plans the model errs more than within one."""
        counts = tuple(self.counts.items())
        form = (self.slowest.form, self.slowest.launch.specialization)
        return (len(self.graphs), counts, form, self.slowest.warps)

    @property
    def likeness(self) -> tuple[object, ...]:
        """
        Equal for plans that are the same but for launches, minor kernels and what the
        model sees no difference in.
        """
        counts = tuple(self.counts.items())
        slowest = self.slowest
        tiles = (*slowest.blocks.items(), None, *slowest.reductions.items())
        return (len(self.graphs), counts, tiles, round(log(self.seconds) / SAME))

    @property
    def slowest(self) -> KernelSchedule:
        return max(self.schedules, key=lambda each: each.seconds)

    @property
    def bound_graphs(self) -> list[GraphOp]:
        """The graphs, with their split counts as facts."""
        return [
            chosen(graph, self.counts) if CHOICES in graph.attributes else graph
            for graph in self.graphs
        ]

    def plan(self, search: Search) -> PlanOp:
        """
        The planned tile program of all kernels.

        Raises PassFailedException for what only sizes with values show to be wrong.
        """
        return composed(
            [
                schedule.plan(prepared_for_schedules(graph), search)
                for graph, schedule in zip(
                    self.bound_graphs, self.schedules, strict=True
                )
            ]
        )


def composed(plans: Sequence[PlanOp]) -> PlanOp:
    """One plan of those of all pieces, or of the whole. Raises PassFailedException."""
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

    Raises ValueError for an attribute `kernel` or `choices` that does not read as one.
    """
    selecting = Selecting(search)
    selecting.add(graphs)
    return selecting.selections()


class Selecting:
    """
    The same, a few graphs at a time. Kernels that several graphs share are ranked once.
    """

    def __init__(self, search: Search) -> None:
        self.search = search
        self._kernels = _Kernels(search)
        self._sequences: list[list[GraphOp]] = []

    def add(self, graphs: Iterable[GraphOp]) -> None:
        """Rank the schedules of graphs; all pieces of a graph come together."""
        sequences = sequences_of(graphs)
        for sequence in sequences:
            for graph in sequence:
                self._kernels.add(graph)
        self._kernels.rank()
        self._sequences += sequences

    def selections(self) -> dict[str, Selection]:
        """The candidates for each graph that those which were added compute."""
        found: dict[str, Selection] = {}
        for sequence in self._sequences:
            selection = found.setdefault(_target(sequence[0]), Selection())
            for counts in counts_of(sequence[0]):
                ranked = [self._kernels.ranked(graph, counts) for graph in sequence]
                for _, pruned in ranked:
                    selection.pruned.add(pruned)
                schedules = [kept for kept, _ in ranked]
                selection.candidates += _combined(
                    tuple(sequence), counts, schedules, self.search
                )
        for selection in found.values():
            selection.candidates.sort(key=lambda each: each.seconds)
        return found


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
    alike = Counter(candidate.likeness for candidate in chosen)
    for candidate in candidates:
        likeness = candidate.likeness
        if candidate not in chosen and alike[likeness] < ALIKE:
            alike[likeness] += 1
            yield candidate


def sequences_of(graphs: Iterable[GraphOp]) -> list[list[GraphOp]]:
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
    own = graph.graph_name if piece is None else piece.of
    return equals(graph) or named_by(graph, CUTS) or own


def _combined(
    graphs: tuple[GraphOp, ...],
    counts: Mapping[str, int],
    schedules: Sequence[Sequence[KernelSchedule]],
    search: Search,
) -> Iterator[Candidate]:
    """The candidates of a sequence, from the best schedules of its kernels."""
    kept = [list(each) for each in schedules]
    while len(kept) > 1 and prod(map(len, kept)) > MOST_COMBINATIONS:
        max(kept, key=len).pop()
    for combination in product(*kept):
        seconds = total_seconds([x.seconds for x in combination], search.hardware)
        yield Candidate(graphs, counts, combination, seconds)


def total_seconds(kernels: Sequence[float], hardware: Hardware) -> float:
    """
    The time of a sequence of kernels with their launches. An empty kernel is one that
    takes `next_launch_seconds`, and no kernel takes less.
    """
    least = hardware.next_launch_seconds
    launch = hardware.launch_seconds - least
    return launch + sum(max(least, seconds) for seconds in kernels)


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
    groups: dict[object, _Group] = field(default_factory=lambda: {})
    of: dict[GraphOp, _Group] = field(default_factory=lambda: {})

    def add(self, graph: GraphOp) -> None:
        choices, used = counts_of(graph), _names_in(graph)
        names = tuple(name for name in choices[0] if name in used)
        group = self.groups.setdefault(_key(graph, names, used), _Group(graph, names))
        for counts in choices:
            group.values[group.key(counts)] = None
        self.of[graph] = group

    def rank(self) -> None:
        """Rank what has been added since the last time."""
        for group in self.groups.values():
            if group.is_ranked:
                continue
            opened = prepared_for_schedules(_without(group.graph, group.counts))
            columns = list(zip(*group.values, strict=True))
            counts = dict(zip(group.counts, columns, strict=True))
            group.ranked = rank(opened, counts, self.search)

    def ranked(
        self, graph: GraphOp, counts: Mapping[str, int]
    ) -> tuple[Sequence[KernelSchedule], Pruned]:
        """The schedules of a graph that was added, with counts that it may have."""
        group = self.of[graph]
        ranked, key = cast(Ranked, group.ranked), group.key(counts)
        return ranked.schedules[key], ranked.pruned[key]


@dataclass
class _Group:
    graph: GraphOp
    """One of the graphs."""
    counts: tuple[str, ...]
    """The symbols of its split counts, as far as it uses them."""
    values: dict[tuple[int, ...], None] = field(
        default_factory=dict[tuple[int, ...], None]
    )
    ranked: Ranked | None = None

    @property
    def is_ranked(self) -> bool:
        return self.ranked is not None and self.values.keys() == (
            self.ranked.schedules.keys()
        )

    def key(self, counts: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(counts[name] for name in self.counts)


def prepared_for_schedules(graph: GraphOp) -> GraphOp:
    """
    A copy of a graph in the form in which it is scheduled: dims of size 1 as numbers,
    products of vectors as sums, casts explicit, broadcasts folded.
    """
    copy = with_ones_as_numbers(graph)
    expand_vector_products(copy)
    insert_casts(copy)
    copy = fold_broadcast(copy)
    sink_scales(copy)
    return copy


def with_ones_as_numbers(graph: GraphOp) -> GraphOp:
    """A copy of a graph with 1 in place of the symbols that are bound to it."""
    copy = graph.clone()
    ones = {name: 1 for name, size in graph.facts.binding.items() if size == 1}
    if ones:
        for op in copy.walk():
            substitute_in(op, ones)
        copy.where = graph.where
    return copy


def counts_of(graph: GraphOp) -> list[dict[str, int]]:
    """The split counts that a graph may have, or the ones that it has."""
    return choices_of(graph) or [_bound_counts(graph)]


def _bound_counts(graph: GraphOp) -> dict[str, int]:
    """The values of the symbols that are said to divide a dim."""
    binding = graph.facts.binding
    divisors = {str(fact.data.lhs) for fact in graph.where if fact.data.relation == "|"}
    return {
        name: value
        for name in graph.symbol_names
        if name in divisors and isinstance(value := binding.get(name), int)
    }


def _facts_without(graph: GraphOp, names: Container[str]) -> Iterator[FactAttr]:
    """The facts of a graph but the values of these symbols."""
    for fact in graph.where:
        if fact.data.relation != "=" or str(fact.data.lhs) not in names:
            yield fact


def _without(graph: GraphOp, names: Container[str]) -> GraphOp:
    opened = graph.clone()
    opened.where = ArrayAttr(_facts_without(graph, names))
    return opened


def _names_in(graph: GraphOp) -> set[str]:
    """The symbols that the operators of a graph, its inputs and results depend on."""
    dims: list[Dim] = [
        dim for type_ in (*graph.input_types, *graph.output_types) for dim in type_.dims
    ]
    for op in graph.operators:
        dims += op.result_type.dims
        for value in op.params.values():
            if isinstance(value, tuple):
                dims += cast(tuple[Dim, ...], value)
            elif isinstance(value, SymbolicDim):
                dims.append(value)
    return {name for dim in dims for name in names_of(dim)}


def _key(graph: GraphOp, counts: Container[str], used: set[str]) -> object:
    """
    Equal for graphs that are the same but for the values of these symbols, and the
    order in which operators stand that do not depend on each other.
    """
    numbers: dict[SSAValue, int] = {}
    for value in graph.inputs:
        numbers[value] = len(numbers)
    operators: list[object] = []
    for op in _as_results_need_them(graph):
        operands = tuple(numbers[value] for value in op.operands)
        properties = tuple(op.properties.items())
        operators.append((type(op), operands, properties, op.result_type))
        numbers[op.results[0]] = len(numbers)
    returned = tuple(numbers[value] for value in graph.return_op.values)
    types = (*graph.input_types, *graph.output_types)
    facts = tuple(
        fact
        for fact in _facts_without(graph, counts)
        if names_of(fact.data.lhs) | names_of(fact.data.rhs) <= used
    )
    return (facts, types, tuple(operators), returned)


def _as_results_need_them(graph: GraphOp) -> list[Operator]:
    """The operators of a graph, each right before the first that needs it."""
    found: dict[Operator, None] = {}

    def add(value: SSAValue) -> None:
        if isinstance(op := value.owner, Operator) and op not in found:
            for operand in op.operands:
                add(operand)
            found[op] = None

    for value in graph.return_op.values:
        add(value)
    return list(found)
