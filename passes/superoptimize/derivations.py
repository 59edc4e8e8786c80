"""
Derivations: the part of a space from which the outputs can be computed, made sound.

Between closure and extraction, producers are dropped that lead nowhere, that are not
known to be defined wherever the graph is (`signs`), that spell another producer
differently, or that fail the second check on other sizes (`verification`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cleave.passes.superoptimize.graph import Number
from cleave.passes.superoptimize.semantics import Undefined
from cleave.passes.superoptimize.signs import Sign, Signed, Signs
from cleave.passes.superoptimize.space import Producer, Space


@dataclass
class Derivations:
    """
    `producers` gives, for every value that is useful and no leaf, ways to compute it.

    `originals` are those of the graph that the search began with, which are never
    dropped.
    """

    space: Space
    outputs: Sequence[int]
    originals: frozenset[Producer]
    producers: dict[int, list[Producer]]

    @classmethod
    def of(
        cls, space: Space, outputs: Sequence[int], originals: Iterable[Producer]
    ) -> Derivations:
        """All producers of all values that the outputs may be computed from."""
        producers = {
            value: list(space.values[value].producers)
            for value in space.reachable(outputs)
            if space.values[value].leaf is None
        }
        return cls(space, outputs, frozenset(originals), producers)

    def keep(self, wanted: Callable[[int, Producer], bool]) -> int:
        """
        Drop the producers that are not wanted, and then whatever leads nowhere: values
        that nothing needs, and operators on values that nothing computes any more.
        Returns the number of producers that were not wanted.
        """
        unwanted = 0
        for value, producers in self.producers.items():
            kept = [p for p in producers if p in self.originals or wanted(value, p)]
            unwanted += len(producers) - len(kept)
            self.producers[value] = kept
        heights = self.heights()
        for value, producers in self.producers.items():
            self.producers[value] = [
                producer
                for producer in producers
                if all(operand in heights for operand in producer.operands)
            ]
        needed: set[int] = set()
        waiting = list(self.outputs)
        while waiting:
            if (value := waiting.pop()) not in needed:
                needed.add(value)
                for producer in self.producers.get(value, ()):
                    waiting.extend(producer.operands)
        self.producers = {v: p for v, p in self.producers.items() if v in needed}
        return unwanted

    def heights(self, *, free_views: bool = False) -> dict[int, int]:
        """
        The smallest number of operators on the longest path from a leaf to each value
        that can be computed; with `free_views`, views do not count.
        """
        heights = {
            number: 0
            for number, value in enumerate(self.space.values)
            if value.leaf is not None
        }
        changed = True
        while changed:
            changed = False
            for value, producers in self.producers.items():
                for producer in producers:
                    if all(operand in heights for operand in producer.operands):
                        cost = self.space.cost(producer) if free_views else 1
                        height = cost + max(heights[v] for v in producer.operands)
                        if height < heights.get(value, height + 1):
                            heights[value] = height
                            changed = True
        return heights


def drop_undefined(derivations: Derivations) -> int:
    """
    Drop producers that are not certain to be defined wherever the graph is.

    What the graph itself divides by, takes roots or logarithms of, is assumed to be
    fit for it; signs of everything else follow. Returns the number of dropped producers.
    """
    space = derivations.space
    assuming = Signs(assuming=True)
    signs = _leaf_signs(space)
    for value, producers in derivations.producers.items():
        for producer in producers:
            if producer in derivations.originals:
                _sign_of(space, assuming, producer, signs)
    signs.update(assuming.assumed)
    proving = Signs(assuming=False)
    changed = True
    while changed:
        changed = False
        for value, producers in derivations.producers.items():
            for producer in producers:
                known = signs.get(value, Sign.UNKNOWN)
                more = known | (_sign_of(space, proving, producer, signs) or known)
                if more != known:
                    signs[value] = more
                    changed = True
    return derivations.keep(
        lambda value, producer: _sign_of(space, proving, producer, signs) is not None
    )


def _leaf_signs(space: Space) -> dict[int, Sign]:
    numbers = Signs(assuming=False)
    return {
        number: numbers.number(value.leaf.source.value).sign
        for number, value in enumerate(space.values)
        if value.leaf is not None and isinstance(value.leaf.source, Number)
    }


def _sign_of(
    space: Space, domain: Signs, producer: Producer, signs: Mapping[int, Sign]
) -> Sign | None:
    """The sign of a producer's result, or None if that is not known to be defined."""
    operands = [Signed(signs.get(v, Sign.UNKNOWN), v) for v in producer.operands]
    shapes = space.operand_shapes(producer)
    try:
        return space.steps[producer.step].interpret(domain, operands, shapes).sign
    except Undefined:
        return None


def drop_synonyms(derivations: Derivations) -> int:
    """
    Of several operators that give a value from the same operands, keep one: `square x`
    rather than `mul x, x`. Returns the number of dropped producers.
    """
    best: dict[tuple[int, frozenset[int]], Producer] = {}
    space = derivations.space
    for value, producers in derivations.producers.items():
        for producer in producers:
            key = (value, frozenset(producer.operands))
            other = best.setdefault(key, producer)
            if _rank(space, producer) < _rank(space, other):
                best[key] = producer
    return derivations.keep(
        lambda value, producer: best[value, frozenset(producer.operands)] == producer
    )


def _rank(space: Space, producer: Producer) -> tuple[int, int, str]:
    """What decides between synonyms: cost, operands, and the text at last."""
    cost = space.cost(producer)
    return cost, len(producer.operands), str(space.steps[producer.step])
