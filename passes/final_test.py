"""The last test of candidates: on their original sizes, or the largest that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import lcm, prod
from typing import TYPE_CHECKING, TypeAlias, cast

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, evaluate, names_of
from cleave.dialects.tensor import TensorType
from cleave.passes.split_choices import split_counts
from cleave.passes.uneven_splits import UnevenSplit, same_numbers

if TYPE_CHECKING:
    from cleave.passes.superoptimize.equivalence import Reference
    from cleave.passes.superoptimize.importing import Imported

Sizes: TypeAlias = Mapping[str, int]

_SMALL = 64
"""A budget so small that inputs can be drawn for which square roots are roots."""


class Original:
    """A graph against which others are tested, at various sizes."""

    def __init__(self, graph: GraphOp, budget: int, seed: int) -> None:
        self.graph = graph
        self.budget = budget
        self.seed = seed
        self._references: dict[tuple[int, ...], Reference] = {}

    def reference(self, sizes: Sizes) -> Reference:
        from cleave.passes.superoptimize.equivalence import Reference

        own = {name: sizes[name] for name in self.graph.symbol_names}
        key = tuple(own.values())
        if key not in self._references:
            self._references[key] = Reference(self.graph, own, self.seed)
        return self._references[key]


class FinalTest:
    """
    A graph that may equal an original, with whatever counts it has.

    The result of a test says at what sizes it was made: those that are asked for, or,
    if a tensor would have more elements than the original's budget, the largest halved
    as often as needed. Counts are kept as they are, and parts at no less than 2
    positions. Chunks become what holds the halved dim, and more.
    """

    def __init__(
        self, original: Original, graph: GraphOp, uneven: Sequence[UnevenSplit] = ()
    ) -> None:
        self.original = original
        self.graph = graph
        self.uneven = uneven
        self.counts = split_counts(graph)
        self.fixed = {
            *self.counts,
            *(name for split in uneven for name in (split.count, split.chunk)),
        }
        self.shapes = {
            cast(TensorType, value.type).dims
            for tested in (original.graph, graph)
            for op in tested.operators
            for value in (*op.operands, *op.results)
        }

    def tested_sizes(self, sizes: Sizes) -> dict[str, int] | None:
        """The sizes at which the graph equals the original, if it does."""
        if self.uneven:
            # Zeros beyond an end and minus infinity are no elements of a field.
            tested = self._sizes_within(self.original.budget, sizes)
            equal = same_numbers(self.original.graph, self.graph, tested)
            return tested if equal else None
        for budget in (self.original.budget, _SMALL):
            tested = self._sizes_within(budget, sizes)
            reference = self.original.reference(tested)
            if reference.equals_imported(self._imported, tested):
                return tested
            if reference.roots_hold:
                break
            # On large tensors roots have signs, by which equal graphs may differ.
        return None

    @cached_property
    def _imported(self) -> Imported:
        from cleave.passes.superoptimize.importing import import_graph

        return import_graph(self.graph)

    def _sizes_within(self, budget: int, sizes: Sizes) -> dict[str, int]:
        shrunk = dict(sizes)
        while any(_elements(shape, shrunk) > budget for shape in self.shapes):
            for name in sorted(sizes, key=shrunk.__getitem__, reverse=True):
                smaller = {} if name in self.fixed else self._halved(name, shrunk)
                if smaller:
                    shrunk |= smaller
                    break
            else:
                break
        return shrunk

    def _halved(self, name: str, sizes: Sizes) -> dict[str, int]:
        """About half of a size, and its chunks; nothing where too little is left."""
        parts = lcm(
            *(sizes[s] for s, dim in self.counts.items() if name in names_of(dim))
        )
        for split in self.uneven:
            if split.extent == name:
                count = sizes[split.count]
                chunk = sizes[name] // 2 // count + 1
                if chunk <= 2 or parts > 1:
                    return {}
                # As in the original, the last part is neither full nor empty.
                return {name: (count - 1) * chunk + chunk // 2, split.chunk: chunk}
        half = sizes[name] // 2 // parts * parts
        return {name: half} if half >= 2 * parts else {}


def _elements(shape: Sequence[Dim], sizes: Sizes) -> int:
    return prod(evaluate(dim, sizes) for dim in shape)
