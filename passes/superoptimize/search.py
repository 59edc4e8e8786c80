"""
The search as a whole: from a graph to every graph equal to it.

Sums are opaque at first, which is always cheap; if the graph has sums, a second closure
distributes products over them, under a share of the time. If that one finishes, its
graphs are the result, otherwise those of the first, and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.abstract import ClassTooLarge
from cleave.passes.superoptimize.closure import Closure
from cleave.passes.superoptimize.derivations import (
    Derivations,
    drop_synonyms,
    drop_undefined,
)
from cleave.passes.superoptimize.extraction import Extraction
from cleave.passes.superoptimize.field import TRIALS
from cleave.passes.superoptimize.graph import Dims, SearchGraph
from cleave.passes.superoptimize.limits import Clock, Limits
from cleave.passes.superoptimize.plans import Counts
from cleave.passes.superoptimize.sampling import draw
from cleave.passes.superoptimize.semantics import Dim
from cleave.passes.superoptimize.verification import (
    InField,
    drop_disagreeing,
    in_reals,
)

_SIZE = 2
"""The extent of every dim while searching."""
_CHECK_SIZE = 3
"""Its extent when the producers are checked again."""
_ORDER_SIZE = 64
"""Its extent for comparing graphs of as many operators by their arithmetic."""


@dataclass(frozen=True)
class Options:
    """What to search for."""

    companions: Sequence[type[Operator]]
    """Operators to use beside the graph's own."""
    extra: int
    """How many more operators than the graph a candidate may have."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 1


@dataclass
class Statistics:
    """Numbers of one search."""

    values: int = 0
    """Distinct values in the closure."""
    useful: int = 0
    """Those of them that some derivation of the outputs uses."""
    producers: int = 0
    """Ways to compute one of these from others."""
    evaluated: int = 0
    """Operators that were evaluated."""
    pruned: Counts = field(default_factory=Counts)
    undefined: int = 0
    """Producers dropped because they may be undefined."""
    synonyms: int = 0
    """Producers dropped because another one spells the same."""
    disagreeing: int = 0
    """Producers dropped by the second look."""
    useless: int = 0
    """Branches cut because they compute the same elements twice."""
    seconds: float = 0.0


@dataclass
class Outcome:
    """What a search found."""

    graphs: list[SearchGraph]
    """Smallest first."""
    sums: Literal["none", "distributed", "opaque"]
    """Whether products were distributed over sums."""
    exhaustive: bool
    """Whether closure and extraction finished."""
    stopped_by: list[str]
    """The limits that were hit, in any attempt."""
    statistics: Statistics
    sizes: dict[Dim, int]
    """The extents of the second look."""
    seeds: tuple[int, int]
    """Of the search and of the second look."""
    checked_in_reals: bool
    trials: int = TRIALS


def search(graph: SearchGraph, dims: Dims, options: Options) -> Outcome:
    """
    Every graph equal to the given one with at most `extra` more operators.

    Raises Undefined if the graph is not defined on any inputs.
    """
    seconds = options.limits.search_seconds
    clock = Clock(seconds)
    outcome, has_sums = _attempt(graph, dims, options, clock, distribute=False)
    if has_sums and outcome.exhaustive:
        rest = Clock((seconds - clock.elapsed) / 2)
        second, _ = _attempt(graph, dims, options, rest, first=outcome, distribute=True)
        if second.exhaustive:
            outcome = second
        else:
            outcome.stopped_by += [
                f"{limit} (distributing)" for limit in second.stopped_by
            ]
    outcome.statistics.seconds = clock.elapsed
    return outcome


def _attempt(
    graph: SearchGraph,
    dims: Dims,
    options: Options,
    clock: Clock,
    *,
    distribute: bool,
    first: Outcome | None = None,
) -> tuple[Outcome, bool]:
    """
    One closure and what follows; also whether any sum was an opaque factor. Where it
    has no more ways to compute anything than the `first`, that has the graphs.
    """
    seeds = (options.seed, options.seed + 1)
    all_dims = graph.dims()
    sample = draw(graph, dims.extents(all_dims, _SIZE), seeds[0])
    extents = dims.extents(all_dims, _CHECK_SIZE)
    try:
        closure = Closure(
            graph,
            dims,
            sample,
            companions=options.companions,
            distribute=distribute,
        )
    except ClassTooLarge as error:
        return _without_closure(graph, extents, seeds, str(error)), False
    closure.run(options.limits, clock)
    statistics = Statistics(
        values=len(closure.space.values),
        evaluated=closure.evaluated,
        pruned=closure.counts,
    )
    derivations = Derivations.of(closure.space, closure.outputs, closure.originals)
    statistics.undefined = drop_undefined(derivations)
    statistics.synonyms = drop_synonyms(derivations)
    again = InField(draw(graph, extents, seeds[1]))
    statistics.disagreeing = drop_disagreeing(derivations, again)
    if (reals := in_reals(graph, extents, seeds[1])) is not None:
        statistics.disagreeing += drop_disagreeing(derivations, reals)
    statistics.useful = len(derivations.producers)
    statistics.producers = sum(map(len, derivations.producers.values()))
    extraction = Extraction(derivations, options.limits, clock)
    sizes = dims.extents(all_dims, _ORDER_SIZE)
    if first is not None and statistics.producers == first.statistics.producers:
        graphs = first.graphs
    else:
        graphs = sorted(
            extraction.graphs(graph.cost + options.extra),
            key=lambda found: (found.cost, found.arithmetic(sizes)),
        )
    statistics.useless = extraction.useless
    statistics.seconds = clock.elapsed
    stopped_by = [s for s in (closure.stopped_by, extraction.stopped_by) if s]
    has_sums = closure.abstraction.has_opaque_sums
    outcome = Outcome(
        graphs=graphs,
        sums="distributed" if distribute else "opaque" if has_sums else "none",
        exhaustive=not stopped_by,
        stopped_by=stopped_by,
        statistics=statistics,
        sizes=extents,
        seeds=seeds,
        checked_in_reals=reals is not None,
    )
    return outcome, has_sums


def _without_closure(
    graph: SearchGraph, sizes: dict[Dim, int], seeds: tuple[int, int], limit: str
) -> Outcome:
    """What is left of a search that a limit ends before it begins: the graph itself."""
    return Outcome(
        graphs=[graph],
        sums="opaque",
        exhaustive=False,
        stopped_by=[limit],
        statistics=Statistics(),
        sizes=sizes,
        seeds=seeds,
        checked_in_reals=False,
    )
