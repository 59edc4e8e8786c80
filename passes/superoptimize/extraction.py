"""
Reading off graphs: every way to derive the outputs, each once, smallest first.

The derivations form an AND-OR graph: a value needs one of its producers, a producer all
of its operands. A graph chooses one producer for every value it uses (two nodes with
one value would be one node), so choosing values from the outputs downwards, with a
lower bound on what is still to come, enumerates the graphs of each cost without
repetition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cleave.passes.superoptimize.derivations import Derivations
from cleave.passes.superoptimize.graph import Leaf, Node, SearchGraph
from cleave.passes.superoptimize.limits import Clock, Limits
from cleave.passes.superoptimize.space import Producer, Space


@dataclass(frozen=True)
class _Choice:
    producer: Producer
    cost: int
    needs: tuple[int, ...]
    """Its operands that are not leaves."""


class Extraction:
    """
    The graphs of some derivations.

    Useless ones are left out: those that compute the same elements twice, say a product
    once for each part of a split dim and once for all of it.
    """

    def __init__(self, derivations: Derivations, limits: Limits, clock: Clock) -> None:
        self.derivations = derivations
        self.limits = limits
        self.clock = clock
        self.stopped_by: str | None = None
        self.useless = 0
        space = derivations.space
        heights = derivations.heights()
        self._bounds = derivations.heights(free_views=True)
        self._order = {
            value: (heights[value], value) for value in derivations.producers
        }
        self._choices = {
            value: [
                _Choice(
                    producer,
                    space.cost(producer),
                    tuple({v for v in producer.operands if v in derivations.producers}),
                )
                for producer in producers
            ]
            for value, producers in derivations.producers.items()
        }
        self._least = {
            value: min((choice.cost for choice in choices), default=0)
            for value, choices in self._choices.items()
        }
        self._visited = 0

    def graphs(self, largest: int) -> Iterator[SearchGraph]:
        """The graphs of at most `largest` operators; sets `stopped_by` at a limit."""
        outputs = frozenset(v for v in self.derivations.outputs if v in self._choices)
        found = 0
        most = sum(
            max((c.cost for c in cs), default=0) for cs in self._choices.values()
        )
        for cost in range(min(largest, most) + 1):
            for chosen in self._search({}, outputs, frozenset(), cost):
                if _is_acyclic(chosen):
                    if found == self.limits.graphs:
                        self.stopped_by = f"graphs={self.limits.graphs}"
                        return
                    found += 1
                    yield self._graph(chosen)
            if self.stopped_by is not None:
                return

    def _search(
        self,
        chosen: dict[int, Producer],
        pending: frozenset[int],
        computed: frozenset[int],
        rest: int,
    ) -> Iterator[dict[int, Producer]]:
        """Choose producers for the pending values that cost exactly `rest` together."""
        self._visited += 1
        if self._visited % 1024 == 0 and self.clock.expired:
            self.stopped_by = f"seconds={self.limits.seconds:.3g}"
        if self.stopped_by is not None:
            return
        if not pending:
            if rest == 0:
                yield chosen
            return
        value = max(pending, key=self._order.__getitem__)
        content = self.derivations.contents[value]
        others = pending - {value}
        for choice in self._choices[value]:
            if choice.cost and content in computed:
                self.useless += 1
                continue
            new = [v for v in choice.needs if v not in chosen and v != value]
            after = others.union(new)
            if self._least_cost(after) + choice.cost <= rest:
                also = computed | {content} if choice.cost else computed
                chosen[value] = choice.producer
                yield from self._search(chosen, after, also, rest - choice.cost)
                del chosen[value]

    def _least_cost(self, pending: frozenset[int]) -> int:
        """At least this much is still to be paid."""
        if not pending:
            return 0
        return max(
            sum(self._least[value] for value in pending),
            max(self._bounds[value] for value in pending),
        )

    def _graph(self, chosen: Mapping[int, Producer]) -> SearchGraph:
        return build_graph(self.derivations.space, self.derivations.outputs, chosen)


def _is_acyclic(chosen: Mapping[int, Producer]) -> bool:
    done: set[int] = set()
    active: set[int] = set()

    def visit(value: int) -> bool:
        if value in done or value not in chosen:
            return True
        if value in active:
            return False
        active.add(value)
        if not all(map(visit, chosen[value].operands)):
            return False
        done.add(value)
        return True

    return all(map(visit, chosen))


def build_graph(
    space: Space, outputs: Sequence[int], chosen: Mapping[int, Producer]
) -> SearchGraph:
    """The graph that computes each value as chosen."""
    leaves: dict[int, Leaf] = {}
    order: list[int] = []
    seen: set[int] = set()

    def visit(value: int) -> None:
        if value in seen:
            return
        seen.add(value)
        if value in chosen:
            for operand in chosen[value].operands:
                visit(operand)
            order.append(value)
        else:
            leaf = space.values[value].leaf
            assert leaf is not None
            leaves[value] = leaf

    for output in outputs:
        visit(output)
    numbers = {value: number for number, value in enumerate([*leaves, *order])}
    nodes = tuple(
        Node(
            space.steps[chosen[value].step],
            tuple(numbers[v] for v in chosen[value].operands),
            space.operand_shapes(chosen[value]),
        )
        for value in order
    )
    return SearchGraph(
        tuple(leaves.values()), nodes, tuple(numbers[output] for output in outputs)
    )
