"""
Derivations: the part of a space from which the outputs can be computed, made sound.

Between closure and extraction, producers are dropped that lead nowhere, that are not
known to be defined wherever the graph is (`signs`), that spell another producer
differently, or that fail the second check on other sizes (`verification`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cleave.passes.superoptimize.graph import Number
from cleave.passes.superoptimize.semantics import Undefined
from cleave.passes.superoptimize.signs import Sign, Signed, Signs
from cleave.passes.superoptimize.space import Producer, Space


@dataclass
class Derivations:
    """
    `producers` gives, for every value that is useful and no leaf, ways to compute it.

    `originals` are those of the graph that the search began with, in order, with their
    values; they are never dropped.
    """

    space: Space
    outputs: Sequence[int]
    originals: Mapping[Producer, int]
    producers: dict[int, list[Producer]]
    contents: Sequence[int]
    """
    For each value a number for the elements that it has, in whatever order: the same
    for a tensor whole, in parts, or transposed.
    """

    @classmethod
    def of(
        cls,
        space: Space,
        outputs: Sequence[int],
        originals: Mapping[Producer, int],
    ) -> Derivations:
        """All producers of all values that the outputs may be computed from."""
        producers = {
            value: list(space.values[value].producers)
            for value in space.reachable(outputs)
            if space.values[value].leaf is None
        }
        numbers: dict[bytes, int] = {}
        contents = [
            numbers.setdefault(value.fingerprint.elements(), len(numbers))
            for value in space.values
        ]
        return cls(space, outputs, originals, producers, contents)

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

    What the graph itself divides by, takes roots or logarithms of, is assumed to be fit
    for it, in any order of its elements; the signs of everything else follow. Returns
    the number of dropped producers.
    """
    signs = _SignsOfContents(derivations)
    signs.infer()
    return derivations.keep(lambda value, producer: signs.of(producer) is not None)


class _SignsOfContents:
    """What is known of the signs of elements, by `Derivations.contents`."""

    def __init__(self, derivations: Derivations) -> None:
        self.derivations = derivations
        self.signs: dict[int, Sign] = {}
        numbers = Signs(assuming=False)
        for number, value in enumerate(derivations.space.values):
            if value.leaf is not None and isinstance(value.leaf.source, Number):
                content = derivations.contents[number]
                self.signs[content] = numbers.number(value.leaf.source.value).sign

    def of(self, producer: Producer, domain: Signs | None = None) -> Sign | None:
        """The sign of a producer's result; None if that is not known to be defined."""
        space = self.derivations.space
        contents = [self.derivations.contents[v] for v in producer.operands]
        operands = [Signed(self.signs.get(c, Sign.UNKNOWN), c) for c in contents]
        step, shapes = space.steps[producer.step], space.operand_shapes(producer)
        domain = domain or Signs(assuming=False)
        try:
            return step.interpret(domain, operands, shapes).sign
        except Undefined:
            return None

    def infer(self) -> None:
        assuming = Signs(assuming=True)
        for producer in self.derivations.originals:
            self.of(producer, assuming)
        self.signs.update(assuming.assumed)
        while any([self._improve(value) for value in self.derivations.producers]):
            pass

    def _improve(self, value: int) -> bool:
        """Learn about a value from its producers; whether there was anything new."""
        content = self.derivations.contents[value]
        before = sign = self.signs.get(content, Sign.UNKNOWN)
        for producer in self.derivations.producers[value]:
            sign |= self.of(producer) or Sign.UNKNOWN
        self.signs[content] = sign
        return sign != before


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
