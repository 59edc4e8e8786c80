"""
The unfused plan, which no result may be slower than: one kernel an operator group, and
a call of a vendor's library for each matmul that is all of its group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.call_libraries import library_plan
from cleave.passes.cost.library import library_seconds
from cleave.passes.partition_reductions import UNFUSED, pieces_of
from cleave.passes.partitioning.piece import KERNEL, piece_of
from cleave.passes.partitioning.reduction_cuts import ReductionCuts
from cleave.passes.scheduling.ranking import KernelSchedule, Search
from cleave.passes.scheduling.selection import (
    Candidate,
    composed,
    prepared_for_schedules,
    select,
    sequences_of,
    total_seconds,
    with_ones_as_numbers,
)

NO_UNFUSED = (
    "no plan with one kernel an operator group was there to compare with, so what was "
    "chosen may be slower than that"
)


@dataclass(frozen=True)
class LibrarySchedule:
    """A graph as a call of a library."""

    call: PlanOp
    seconds: float
    """By the model, without the launch."""

    def plan(self, graph: GraphOp, search: Search) -> PlanOp:
        """The call, whatever is prepared for the schedules of kernels."""
        return self.call.clone()

    def __str__(self) -> str:
        return "matmul of a library (cuBLAS)"


Schedule = KernelSchedule | LibrarySchedule


@dataclass(frozen=True)
class Unfused:
    """Graphs that run one after another, some by calls of a library."""

    graphs: tuple[GraphOp, ...]
    schedules: tuple[Schedule, ...]
    seconds: float
    """By the model, launches included."""

    @property
    def calls_library(self) -> bool:
        return any(isinstance(each, LibrarySchedule) for each in self.schedules)

    def plan(self, search: Search) -> PlanOp:
        """The plan of all kernels and calls. Raises PassFailedException."""
        return composed(
            [
                schedule.plan(prepared_for_schedules(graph), search)
                for graph, schedule in zip(self.graphs, self.schedules, strict=True)
            ]
        )


def is_unfused(graphs: Sequence[GraphOp]) -> bool:
    """Whether these are the pieces of a graph with one kernel an operator group."""
    place = graphs[0].attributes.get(KERNEL)
    return isinstance(place, DictionaryAttr) and UNFUSED in place.data


def unfused(
    graphs: Sequence[GraphOp], candidates: Sequence[Candidate], search: Search
) -> list[Unfused]:
    """
    The unfused plans among graphs that compute the same, and their pieces, the fastest
    by the model first. A graph that is one matmul is its own unfused form.

    `candidates` are what the graphs have schedules for, the fastest first.
    """
    groups = [each for each in sequences_of(graphs) if is_unfused(each)]
    if not groups:
        groups = [[g] for g in graphs if KERNEL not in g.attributes and _call(g)]
    found = _with_calls(groups, _best(candidates), search)
    if not found:
        # Matmuls without a schedule may be all that keeps others from having one.
        rest = [g for group in groups for g in group if _call(g) is None]
        selections = select(rest, search).values()
        others = [each for found in selections for each in found.candidates]
        found = _with_calls(groups, _best(others), search)
    return sorted(found, key=lambda each: each.seconds)


def by_operators(graph: GraphOp, search: Search) -> list[Unfused]:
    """The same with one kernel an operator, for graphs with groups of no schedule."""
    found = ReductionCuts(graph).one_by_one()
    pieces = pieces_of(found, f"{graph.graph_name}_operators", UNFUSED)
    return unfused(pieces, (), search)


def why_none(
    graph: GraphOp,
    graphs: Sequence[GraphOp],
    refused: Mapping[str, str],
    search: Search,
) -> str | None:
    """
    Why there is no unfused plan of `graph` among those of `graphs`, which equal it.

    `refused` has reasons why sequences, by their names, have no program after all. None
    if the graph is one operator group, so that any kernel of it is unfused.
    """
    for group in sequences_of(graphs):
        if is_unfused(group) and (reason := _lack(group, refused, search)) is not None:
            return f"{NO_UNFUSED}: {reason}"
    try:
        is_one_group = len(ReductionCuts(graph).unfused().drafts) == 1
    except PassFailedException as error:
        return f"{NO_UNFUSED}: {error}"
    return None if is_one_group else NO_UNFUSED


def _call(graph: GraphOp) -> PlanOp | None:
    """
    A graph as a call of a library, if it is one, with the dims that the plans of its
    neighbours have.
    """
    return library_plan(with_ones_as_numbers(graph))


def _lack(
    group: Sequence[GraphOp], refused: Mapping[str, str], search: Search
) -> str | None:
    """What keeps these pieces from being a plan, if that is known."""
    for piece in group:
        if _call(piece) is None:
            (selection,) = select([piece], search).values()
            if not selection.candidates:
                return (
                    f"the operator group {_listed(piece)} of @{piece.graph_name} has "
                    f"no schedule: {selection.pruned.binding()}"
                )
    whole = piece_of(group[0])
    if whole is not None and whole.of in refused:
        return f"@{whole.of} has no program: {refused[whole.of]}"
    return None


def _listed(graph: GraphOp) -> str:
    """The operators of a graph that compute something."""
    names = [
        op.name.partition(".")[2]
        for op in graph.operators
        if not op.IS_VIEW and op.operands
    ]
    return f"({', '.join(dict.fromkeys(names))})"


def _best(candidates: Sequence[Candidate]) -> dict[GraphOp, KernelSchedule]:
    """The best schedule of each graph, which the fastest of a sequence has."""
    schedules: dict[GraphOp, KernelSchedule] = {}
    for candidate in candidates:
        for graph, schedule in zip(candidate.graphs, candidate.schedules, strict=True):
            schedules.setdefault(graph, schedule)
    return schedules


def _with_calls(
    groups: Sequence[Sequence[GraphOp]],
    schedules: Mapping[GraphOp, KernelSchedule],
    search: Search,
) -> list[Unfused]:
    """The sequences of which each graph is a call of a library, or has a schedule."""
    found: list[Unfused] = []
    for group in groups:
        chosen: list[Schedule] = []
        for graph in group:
            if (call := _call(graph)) is not None:
                seconds = library_seconds(call, search.hardware)
                chosen.append(LibrarySchedule(call, seconds))
            elif graph in schedules:
                chosen.append(schedules[graph])
        if len(chosen) == len(group):
            seconds = total_seconds([each.seconds for each in chosen], search.hardware)
            found.append(Unfused(tuple(group), tuple(chosen), seconds))
    return found
