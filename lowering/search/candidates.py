"""From a graph to the plans that may be its fastest kernels, by the cost model."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware
from cleave.lowering.search.effort import Ablation, Effort
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
from cleave.passes.drop_shifts import DropShiftsPass
from cleave.passes.equal_graphs import have_candidates
from cleave.passes.infer_reduced_dims import InferReducedDimsPass
from cleave.passes.partition_reductions import PartitionReductionsPass
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.partitioning.piece import piece_of
from cleave.passes.pass_warnings import collected_warnings
from cleave.passes.scheduling.ranking import Pruned, Search
from cleave.passes.scheduling.selection import Candidate, Selection, select, varied
from cleave.passes.sink_scales import SinkScalesPass
from cleave.passes.specialize import SpecializePass
from cleave.passes.stabilize_exp import StabilizeExpPass
from cleave.passes.superoptimize.superoptimize import SuperoptimizePass
from cleave.passes.symbolize import SymbolizePass

Step = Callable[[str], object]

MOST_GRAPHS = 8_000
"""Equal graphs of which the most promising are taken; 0.3 ms each."""
LEAST_PART = 64
"""Positions of a part of a split dim: a memory line of f16, the least loop tile."""
PARTS_PER_MULTIPROCESSOR = 4
"""More parts than fill the GPU are never faster; some share a multiprocessor."""


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
) -> Candidates:
    """
    The plans to build for a symbolic graph whose sizes are bound.

    Raises CompilationError if the graph is refused, NoScheduleError if it has no legal
    schedule.
    """
    search = Search(hardware, iterate=ablation.iterate, layouts=ablation.layouts)
    found = Candidates()
    module = _equal_graphs(graph, effort, hardware, ablation, found, progress)
    graphs, candidates, selection = _selected(graph, module, search, progress)
    if effort.split == "none" and could_run_in_parts(selection, search):
        found = Candidates()
        effort = replace(effort, split="inputs")
        module = _equal_graphs(graph, effort, hardware, ablation, found, progress)
        graphs, candidates, selection = _selected(graph, module, search, progress)
    found.graphs = len(
        {(each.graphs, *each.counts.values()) for each in selection.candidates}
    )
    found.pruned = selection.pruned
    progress("generate kernels")
    found.later = _planned(selection.candidates, effort.plans, search, fast_math, found)
    found.plans += islice(found.later, effort.plans)
    for candidate in unfused(candidates, selection.candidates, search):
        is_there = any(plan.is_unfused for plan in found.plans)
        if is_there and not candidate.calls_library:
            break
        if (plan := _plan(candidate, search, fast_math, found)) is not None:
            found.plans.append(plan)
            break
    # None is whole if the graph splits a dim itself: it is there in pieces only.
    whole = next((each for each in graphs if piece_of(each) is None), None)
    found.unfused = _unfused(candidates, selection, whole, search, fast_math, found)
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
    graph: GraphOp, module: ModuleOp, search: Search, progress: Step
) -> tuple[list[GraphOp], list[GraphOp], Selection]:
    """All graphs of a module, those that compete, and their best schedules."""
    progress("schedule")
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    originals = have_candidates(graphs)
    candidates = [g for g in graphs if g.graph_name not in originals]
    try:
        return graphs, candidates, select(candidates, search)[graph.graph_name]
    except (PassFailedException, ValueError) as error:
        raise CompilationError(f"@{graph.graph_name}: {error}") from error


def _planned(
    candidates: Sequence[Candidate],
    count: int,
    search: Search,
    fast_math: bool,
    found: Candidates,
) -> Iterator[PlannedCandidate]:
    """The candidates that have a program, in the order in which to try them."""
    for candidate in varied(candidates, count):
        if (plan := _plan(candidate, search, fast_math, found)) is not None:
            yield plan


def _unfused(
    candidates: Sequence[GraphOp],
    selection: Selection,
    whole: GraphOp | None,
    search: Search,
    fast_math: bool,
    found: Candidates,
) -> Iterator[PlannedCandidate]:
    """
    The unfused plans that are none of `found` yet: with one kernel an operator group,
    then, of a whole graph, with one kernel an operator.
    """
    for kind in (
        lambda: unfused(candidates, selection.candidates, search),
        lambda: by_operators(whole, search) if whole is not None else (),
    ):
        for candidate in kind():
            if (plan := _plan(candidate, search, fast_math, found)) is not None:
                yield plan


def _equal_graphs(
    graph: GraphOp,
    effort: Effort,
    hardware: Hardware,
    ablation: Ablation,
    found: Candidates,
    progress: Step,
) -> ModuleOp:
    """A module of all graphs and sequences of graphs that compute the same."""
    module = _run(
        graph.graph_name, ModuleOp([graph.clone()]), [SymbolizePass(), DropShiftsPass()]
    )
    found.stages[DropShiftsPass.name] = f"{module!s}\n"
    if ablation.superoptimize:
        progress("search for equal graphs")
        superoptimize = SuperoptimizePass(
            split=effort.split, graphs=MOST_GRAPHS, promising=effort.graphs
        )
        specialize = SpecializePass(
            apart=False,
            least_part=LEAST_PART,
            most_parts=PARTS_PER_MULTIPROCESSOR * hardware.multiprocessors,
        )
        name = graph.graph_name
        try:
            with collected_warnings() as warnings:
                equal = _run(
                    name, module.clone(), [InferReducedDimsPass(), superoptimize]
                )
                progress("test equal graphs")
                module = _run(name, equal, [specialize])
            found.notes += warnings
            found.stages["equal-graphs"] = f"{module!s}\n"
        except CompilationError as error:
            # A graph that cannot be searched can still be scheduled as it is.
            found.notes.append(str(error))
    progress("divide graphs into kernels")
    passes = [
        StabilizeExpPass(),
        PartitionSplitPass(),
        PartitionReductionsPass(limit=effort.cuts),
        SinkScalesPass(),
    ]
    # One of the graphs may have no unfused plan; `why_none` says it if none has one.
    with collected_warnings():
        return _run(graph.graph_name, module, passes)


def _run(name: str, module: ModuleOp, passes: Sequence[ModulePass]) -> ModuleOp:
    """Run passes, and verify what they have made together."""
    ctx = Context()  # none of the passes asks it for anything
    running = ""
    try:
        for pass_ in passes:
            running = pass_.name
            pass_.apply(ctx, module)
        module.verify()
    except (PassFailedException, VerifyException) as error:
        raise CompilationError(f"@{name}: {running}: {error}") from error
    return module


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
        candidate.seconds * 1e3,
        isinstance(candidate, Unfused) or is_unfused(candidate.graphs),
        calls_library,
        candidate.schedules,
    )


def computed(pieces: Sequence[GraphOp]) -> str:
    """The name of what pieces compute together, or of the one graph that they are."""
    piece = piece_of(pieces[0])
    return pieces[0].graph_name if piece is None else piece.of
