"""The worthwhile cuts of a graph at its reductions, and its unfused form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.partitioning.boundaries import Boundaries, Boundary, Place
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.draft import Draft, drafts_of, stored
from cleave.passes.partitioning.feasibility import why_not_one_kernel
from cleave.passes.partitioning.grouping import grouped
from cleave.passes.partitioning.operator_groups import around_groups
from cleave.passes.partitioning.traffic import sizes_of, traffic_of

MOST_CHAINS = 256
"""How many sequences of boundaries are looked at for one graph."""

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

    @cached_property
    def drafts(self) -> list[Draft]:
        return drafts_of(self.graph, self.steps)


class ReductionCuts:
    """The cuts of one graph at its reductions."""

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.sizes = sizes_of(graph)
        self._boundaries = Boundaries(graph, self.sizes)
        self._verdicts: dict[
            tuple[frozenset[SSAValue], frozenset[SSAValue]], str | None
        ] = {}
        """Why a piece is no kernel, by its results and operands; cuts share many."""

    @property
    def none(self) -> ReductionCut:
        """The graph as it is, in one piece."""
        return ReductionCut(
            self.graph, (), traffic_of(drafts_of(self.graph, ()), self.sizes)
        )

    def by_traffic(self, most_traffic: int | None = None) -> Iterator[ReductionCut]:
        """
        The cuts that have a schedule, those first that move the fewest bytes. The graph
        as it is is not among them, nor is what moves more than `most_traffic` bytes.

        Boundaries lie behind closed sets of reductions; at each of them is kept what
        moves the fewest bytes, or else the operands of the matmuls behind it. What has
        nothing in common is computed by kernels of their own, even where there is no
        boundary.
        """
        choices = self._choices()
        order = count()
        queue: list[tuple[int, int, tuple[Boundary, ...], ReductionCut]] = []

        def look_at(chain: tuple[Boundary, ...]) -> None:
            found = self._cut_at(chain)
            if most_traffic is None or found.traffic <= most_traffic:
                heappush(queue, (found.traffic, next(order), chain, found))

        look_at(())
        seen: set[frozenset[frozenset[SSAValue]]] = set()
        for _ in range(MOST_CHAINS):
            if not queue:
                return
            _, _, chain, found = heappop(queue)
            pieces = frozenset(draft.values for draft in found.drafts)
            if chain and pieces in seen:
                continue  # a boundary at which nothing new is kept
            seen.add(pieces)
            if len(found.drafts) > 1:
                if self.why_not(found) is None:
                    yield found
                elif chain and chain[-1][1] is Place.OPERANDS:
                    # Perhaps rows are too long to be normalized by one kernel.
                    look_at((*chain[:-1], (chain[-1][0], Place.LEAST), chain[-1]))
            for closed, place in choices:
                if not chain or chain[-1][0] < closed:
                    look_at((*chain, (closed, place)))

    def unfused(self) -> ReductionCut:
        """
        One kernel an operator group: every matmul alone, and between matmuls the
        reductions that reduce the same dims to the same dims, with the elementwise
        operators around them. Without such a schedule every reduction is a group.

        Raises PassFailedException where neither has a schedule.
        """
        reason: str | None = None
        for together in (True, False):
            found = self._cut_at(list(around_groups(self._boundaries, together)))
            if (reason := self.why_not(found)) is None:
                return found
        name = self.graph.graph_name
        raise PassFailedException(f"@{name} has no unfused plan: {reason}")

    def one_by_one(self) -> ReductionCut:
        """One kernel an operator, so that no tile has to fit beside another one."""
        steps = tuple(
            op.results for op in self.graph.operators if op.operands and not op.IS_VIEW
        )
        traffic = traffic_of(drafts_of(self.graph, steps), self.sizes)
        return ReductionCut(self.graph, steps, traffic)

    def why_not(self, found: ReductionCut) -> str | None:
        """Why a piece of a cut cannot be a kernel, if one cannot."""
        pieces: list[GraphOp] = []
        for number, draft in enumerate(found.drafts):
            key = draft.values, frozenset(draft.operands)
            if key not in self._verdicts:
                pieces = pieces or cut(self.graph, found.steps, self.graph.graph_name)
                self._verdicts[key] = why_not_one_kernel(pieces[number], self.sizes)
            if (reason := self._verdicts[key]) is not None:
                return reason
        return None

    def _choices(self) -> list[Boundary]:
        """The boundaries at which the graph may be cut."""
        everything = self._boundaries.everything
        choices = [
            (closed, place)
            for closed in self._boundaries.closed_sets()
            for place in (Place.LEAST, Place.OPERANDS)
            if closed != everything
        ]
        # Row statistics are worth keeping in front of the outputs, products are not.
        if self._boundaries.keeps_less_than_outputs(everything):
            choices.append((everything, Place.LEAST))
        return choices

    def _cut_at(self, chain: Sequence[Boundary]) -> ReductionCut:
        """The graph cut at boundaries, and between what has nothing in common."""
        boundaries = self._boundaries
        steps: list[list[SSAValue]] = []
        already: set[SSAValue] = set()
        for closed, place in chain:
            kept = boundaries.kept(closed, place, frozenset(already))
            if place is not Place.RESULTS and closed != boundaries.everything:
                kept += boundaries.outputs_in_front(closed)
            steps.append(kept)
            already.update(map(stored, kept))
        groups = tuple(map(tuple, grouped(self.graph, steps)))
        traffic = traffic_of(drafts_of(self.graph, groups), self.sizes)
        return ReductionCut(self.graph, groups, traffic)
