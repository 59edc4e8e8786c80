"""From a graph to the plans that may be its fastest kernels, by the cost model."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware
from cleave.lowering.search.effort import Ablation, Effort
from cleave.lowering.search.equal_graphs import EqualGraphs, SearchTime
from cleave.lowering.search.parts import could_run_in_parts
from cleave.lowering.search.unfused import (
    Schedule,
    Unfused,
    by_operators,
    is_unfused,
    unfused,
    why_none,
)
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.tilelang.text import EmissionError
from cleave.passes.cost.breakdown import plan_seconds
from cleave.passes.partitioning.piece import piece_of
from cleave.passes.scheduling.ranking import Pruned, Search
from cleave.passes.scheduling.selection import (
    Candidate,
    Selecting,
    Selection,
    total_seconds,
    varied,
)

Step = Callable[[str], object]


@dataclass(frozen=True)
class PlannedCandidate:
    """A plan that may be the fastest, with its generated source."""

    plan: PlanOp
    source: str
    schedules: Sequence[str]
    """What was chosen for each of its kernels."""
    graphs: Sequence[str]
    """The IR of the graphs that its kernels compute."""
    pieces: Sequence[GraphOp]
    """The same."""
    predicted_ms: float
    is_unfused: bool
    calls_library: bool = False
    """Whether a part of it is a vendor's, which only measurement can judge."""
    steps: Sequence[Schedule] = ()
    """The schedules of `pieces`."""


@dataclass
class Candidates:
    """What the search found for one graph; `plans` with the fastest first."""

    plans: list[PlannedCandidate] = field(default_factory=list[PlannedCandidate])
    graphs: int = 0
    """Graphs and sequences of pieces that competed."""
    pruned: Pruned = field(default_factory=Pruned)
    notes: list[str] = field(default_factory=list[str])
    refused: list[tuple[str, str, str]] = field(
        default_factory=list[tuple[str, str, str]]
    )
    """Graphs and schedules of them that have no program after all, with the reason."""
    stages: dict[str, str] = field(default_factory=dict[str, str])
    """The IR on the way to the graphs that competed, by what made it."""
    sources: set[str] = field(default_factory=set[str])
    """Those of all plans so far: two schedules may make the same program."""
    later: Iterator[PlannedCandidate] = field(
        default_factory=lambda: iter(tuple[PlannedCandidate, ...]())
    )
    """Those behind `plans`, in order, each planned when it is asked for."""
    unfused: Iterator[PlannedCandidate] = field(
        default_factory=lambda: iter(tuple[PlannedCandidate, ...]())
    )
    """Unfused ones that are not among `plans`, likewise."""


class NoScheduleError(CompilationError):
    """A graph none of whose schedules obeys the rules."""


@contextmanager
def _without_collection() -> Generator[None]:
    """
    Leave cycles of garbage alone: IR is full of cycles, and to look for those that are
    garbage takes a sixth of a search, which otherwise leaves 20 MB a second behind.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_collection()
def find_candidates(
    graph: GraphOp,
    effort: Effort,
    hardware: Hardware,
    ablation: Ablation,
    fast_math: bool,
    progress: Step,
    *,
    deadline: float | None = None,
) -> Candidates:
    """
    The plans to build for a symbolic graph whose sizes are bound. `deadline` is a
    `time.monotonic()` by which the best of them is to be built; see `SearchTime`.

    Raises CompilationError if the graph is refused, NoScheduleError if it has no legal
    schedule.
    """
    search = Search(hardware, iterate=ablation.iterate, layouts=ablation.layouts)
    found = Candidates()
    time = SearchTime(effort.search_seconds, deadline)
    equal = EqualGraphs(graph, effort, hardware, time)
    candidates, selection = _selected(equal, ablation, search, progress)
    has_time = effort.split == "none" and time.rest > 0
    if has_time and could_run_in_parts(selection, search):
        split = EqualGraphs(graph, replace(effort, split="inputs"), hardware, time)
        others, parts = _selected(split, ablation, search, progress)
        # Its time may be over before it comes to what was found without.
        if _best_seconds(parts) <= _best_seconds(selection):
            equal, candidates, selection = split, others, parts
    found.notes, found.stages = equal.notes, equal.stages
    found.graphs = len(
        {(each.graphs, *each.counts.values()) for each in selection.candidates}
    )
    found.pruned = selection.pruned
    progress("generate kernels")
    ordered = varied(selection.candidates, effort.plans)
    found.later = _planned(ordered, search, fast_math, found)
    found.plans += islice(found.later, effort.plans)
    groups = unfused(candidates, selection.candidates, search)
    for candidate in groups:
        is_there = any(plan.is_unfused for plan in found.plans)
        if is_there and not candidate.calls_library:
            break
        if (plan := _plan(candidate, search, fast_math, found)) is not None:
            found.plans.append(plan)
            break
    # None is whole if the graph splits a dim itself: it is there in pieces only.
    whole = next((each for each in candidates if piece_of(each) is None), None)
    rest = _with_operators(groups, whole, search)
    found.unfused = _planned(rest, search, fast_math, found)
    if not any(plan.is_unfused for plan in found.plans):
        refused = {name: reason for name, _, reason in found.refused}
        why = why_none(graph, candidates, refused, search)
        if why is not None or not found.plans:
            found.plans += islice(found.unfused, 1)
        if why is not None and found.plans and not found.plans[-1].is_unfused:
            found.notes.append(why)
    found.plans.sort(key=lambda plan: plan.predicted_ms)
    if not found.plans:
        reason = found.refused[-1][-1] if found.refused else found.pruned.binding()
        raise NoScheduleError(f"@{graph.graph_name} has no legal schedule: {reason}")
    return found


def _selected(
    equal: EqualGraphs, ablation: Ablation, search: Search, progress: Step
) -> tuple[list[GraphOp], Selection]:
    """The graphs that compete, and their best schedules."""
    if ablation.superoptimize:
        progress("search for equal graphs")
        equal.find()
        progress("test equal graphs")
        equal.test()
    progress("schedule")
    name = equal.graph.graph_name
    selecting = Selecting(search)
    candidates: list[GraphOp] = []
    try:
        for divided in equal.divided():
            selecting.add(divided)
            candidates += divided
        return candidates, selecting.selections()[name]
    except (PassFailedException, ValueError) as error:
        raise CompilationError(f"@{name}: {error}") from error


def _best_seconds(selection: Selection) -> float:
    return min((each.seconds for each in selection.candidates), default=inf)


def _planned(
    candidates: Iterable[Candidate | Unfused],
    search: Search,
    fast_math: bool,
    found: Candidates,
) -> Iterator[PlannedCandidate]:
    """Those that have a program, which is none of `found` yet, in their order."""
    for candidate in candidates:
        if (plan := _plan(candidate, search, fast_math, found)) is not None:
            yield plan


def _with_operators(
    groups: Sequence[Unfused], whole: GraphOp | None, search: Search
) -> Iterator[Unfused]:
    """Unfused plans, and at last those of a whole graph with one kernel an operator."""
    yield from groups
    if whole is not None:
        yield from by_operators(whole, search)


def _plan(
    candidate: Candidate | Unfused, search: Search, fast_math: bool, found: Candidates
) -> PlannedCandidate | None:
    """A candidate with its source; None if it has none, or that of another plan."""
    schedules = [str(schedule) for schedule in candidate.schedules]
    calls_library = isinstance(candidate, Unfused) and candidate.calls_library
    graphs = (
        candidate.graphs if isinstance(candidate, Unfused) else candidate.bound_graphs
    )
    try:
        plan = candidate.plan(search)
        source = emit_module(plan, fast_math)
    except (PassFailedException, EmissionError) as error:
        found.refused.append((computed(graphs), "; ".join(schedules), str(error)))
        return None
    if source in found.sources:
        return None
    found.sources.add(source)
    return PlannedCandidate(
        plan,
        source,
        schedules,
        [str(graph) for graph in graphs],
        graphs,
        # What is planned with tiles as numbers may differ from what was ranked.
        total_seconds(plan_seconds(plan, search.hardware), search.hardware) * 1e3,
        isinstance(candidate, Unfused) or is_unfused(candidate.graphs),
        calls_library,
        candidate.schedules,
    )


def computed(pieces: Sequence[GraphOp]) -> str:
    """The name of what pieces compute together, or of the one graph that they are."""
    piece = piece_of(pieces[0])
    return pieces[0].graph_name if piece is None else piece.of
