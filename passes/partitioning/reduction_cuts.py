"""The worthwhile cuts of a graph at its reductions, and its unfused form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim
from cleave.passes.partitioning.boundaries import Boundaries, Place
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.draft import Draft, drafts_of, stored
from cleave.passes.partitioning.feasibility import why_not_one_kernel
from cleave.passes.partitioning.grouping import grouped
from cleave.passes.partitioning.traffic import sizes_of, traffic_of

MOST_CHAINS = 256
"""How many sequences of boundaries are looked at for one graph."""

Boundary: TypeAlias = tuple[frozenset[int], Place]
"""A closed set of reductions, and what is kept when they are done."""

Step: TypeAlias = tuple[SSAValue, ...]


@dataclass(frozen=True)
class ReductionCut:
    """
    A graph in pieces.

    `steps` are the values that each piece but the last keeps, `traffic` the bytes that
    all pieces read and write when each reads its operands once.
    """

    graph: GraphOp
    steps: tuple[Step, ...]
    traffic: int

    @property
    def drafts(self) -> list[Draft]:
        return drafts_of(self.graph, self.steps)


def reduction_cuts(
    graph: GraphOp, most_traffic: int | None = None
) -> Iterator[ReductionCut]:
    """
    The cuts of a graph at its reductions that have a schedule, those first that move
    the fewest bytes. The uncut graph is not among them, nor is what moves more than
    `most_traffic` bytes.

    Boundaries lie behind closed sets of reductions; at each of them is kept what moves
    the fewest bytes, or else the operands of the matmuls behind it. What has nothing in
    common is computed by kernels of their own, even where there is no boundary.
    """
    boundaries = Boundaries(graph, sizes_of(graph))
    choices = _choices(boundaries)
    verdicts = Verdicts(graph)
    order = count()
    queue: list[tuple[int, int, tuple[Boundary, ...], ReductionCut]] = []

    def look_at(chain: tuple[Boundary, ...]) -> None:
        found = _cut_at(boundaries, chain)
        if most_traffic is None or found.traffic <= most_traffic:
            heappush(queue, (found.traffic, next(order), chain, found))

    look_at(())
    seen: set[frozenset[frozenset[SSAValue]]] = set()
    for _ in range(MOST_CHAINS):
        if not queue:
            return
        _, _, chain, found = heappop(queue)
        drafts = found.drafts
        pieces = frozenset(
            frozenset([*draft.passed_on, *draft.outputs.values()]) for draft in drafts
        )
        if chain and pieces in seen:
            continue  # a boundary at which nothing new is kept
        seen.add(pieces)
        if len(drafts) > 1:
            if verdicts.why_not(found) is None:
                yield found
            elif chain and chain[-1][1] is Place.OPERANDS:
                # Perhaps rows are too long to be normalized by one kernel.
                look_at((*chain[:-1], (chain[-1][0], Place.LEAST), chain[-1]))
        for closed, place in choices:
            if not chain or chain[-1][0] < closed:
                look_at((*chain, (closed, place)))


def _choices(boundaries: Boundaries) -> list[Boundary]:
    """The boundaries at which a graph may be cut."""
    everything = boundaries.everything
    choices = [
        (closed, place)
        for closed in boundaries.closed_sets()
        for place in (Place.LEAST, Place.OPERANDS)
        if closed != everything
    ]
    # Row statistics are worth keeping in front of the outputs, whole products are not.
    if boundaries.keeps_less_than_outputs(everything):
        choices.append((everything, Place.LEAST))
    return choices


def without_cut(graph: GraphOp) -> ReductionCut:
    """The graph as it is, in one piece."""
    traffic = traffic_of(drafts_of(graph, ()), sizes_of(graph))
    return ReductionCut(graph, (), traffic)


def unfused(graph: GraphOp) -> ReductionCut:
    """
    One kernel an operator group: every matmul alone, and between matmuls the reductions
    that reduce the same dims to the same dims, with the elementwise operators around
    them. Without such a schedule every reduction is a group.

    Raises PassFailedException where neither has a schedule.
    """
    boundaries = Boundaries(graph, sizes_of(graph))
    reason: str | None = None
    for together in (True, False):
        found = _cut_at(boundaries, list(_around_groups(boundaries, together)))
        reason = Verdicts(graph).why_not(found)
        if reason is None:
            return found
    raise PassFailedException(f"@{graph.graph_name} has no unfused plan: {reason}")


class Verdicts:
    """Which pieces of one graph can be kernels; cuts have many of them in common."""

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.sizes = sizes_of(graph)
        self._known: dict[tuple[frozenset[SSAValue], frozenset[SSAValue]], str | None]
        self._known = {}

    def why_not(self, found: ReductionCut) -> str | None:
        """Why a piece of a cut cannot be a kernel, if one cannot."""
        pieces = cut(self.graph, found.steps, self.graph.graph_name)
        for draft, piece in zip(found.drafts, pieces, strict=True):
            results = frozenset([*draft.passed_on, *draft.outputs.values()])
            key = results, frozenset(draft.operands)
            if key not in self._known:
                self._known[key] = why_not_one_kernel(piece, self.sizes)
            if (reason := self._known[key]) is not None:
                return reason
        return None


def _around_groups(boundaries: Boundaries, together: bool) -> Iterator[Boundary]:
    """The boundaries around every matmul and every group of other reductions."""
    done = frozenset[int]()
    while done != boundaries.everything:
        if others := _ready(boundaries, done, matmuls=False):
            if any(map(boundaries.only_regroups, others)):
                yield done, Place.LEAST
            for number in others:
                done = _group(boundaries, number, done, together)
            if not together or _ready(boundaries, done, matmuls=False):
                yield done, Place.LEAST
        else:
            yield done, Place.OPERANDS
            done |= {_ready(boundaries, done, matmuls=True)[0]}
            yield done, Place.RESULTS


def _ready(boundaries: Boundaries, done: frozenset[int], matmuls: bool) -> list[int]:
    """The reductions that can be done next."""
    return [
        number
        for number in sorted(boundaries.everything - done)
        if boundaries.needs(number) <= done
        and matmuls == boundaries.reductions[number].ON_TENSOR_CORES
    ]


def _group(
    boundaries: Boundaries, first: int, done: frozenset[int], together: bool
) -> frozenset[int]:
    """The reductions done when a group is that begins with `first`."""

    def dims(number: int) -> tuple[Sequence[Dim], Sequence[Dim]]:
        op = boundaries.reductions[number]
        return op.expression.reduced, op.result_type.dims

    done |= {first}
    if not together or boundaries.only_regroups(first):
        return done
    for number in sorted(boundaries.everything - done):
        op = boundaries.reductions[number]
        if boundaries.only_regroups(number) or op.ON_TENSOR_CORES:
            continue
        if boundaries.needs(number) <= done and dims(number) == dims(first):
            done |= {number}
    return done


def _cut_at(boundaries: Boundaries, chain: Sequence[Boundary]) -> ReductionCut:
    """The graph cut at boundaries, and between what has nothing in common."""
    graph = boundaries.graph
    steps: list[list[SSAValue]] = []
    already: set[SSAValue] = set()
    for closed, place in chain:
        kept = boundaries.kept(closed, place, frozenset(already))
        if place is not Place.RESULTS and closed != boundaries.everything:
            kept += boundaries.outputs_in_front(closed)
        steps.append(kept)
        already.update(map(stored, kept))
    groups = tuple(map(tuple, grouped(graph, steps)))
    traffic = traffic_of(drafts_of(graph, groups), boundaries.sizes)
    return ReductionCut(graph, groups, traffic)
