"""The last test of a candidate: on the original shapes, or as near as is affordable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm, prod
from typing import TYPE_CHECKING, cast

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, evaluate, names_of
from cleave.dialects.tensor import TensorType
from cleave.passes.uneven_splits import UnevenSplit, same_numbers

if TYPE_CHECKING:
    from cleave.passes.superoptimize.equivalence import Reference

_SMALL = 64
"""A budget so small that inputs can be drawn for which square roots are roots."""


class FinalTest:
    """An original graph, against which candidates are tested at various sizes."""

    def __init__(self, graph: GraphOp, budget: int, seed: int) -> None:
        self.graph = graph
        self.budget = budget
        self.seed = seed
        self._references: dict[tuple[tuple[str, int], ...], Reference] = {}

    def tested_sizes(
        self,
        graph: GraphOp,
        sizes: Mapping[str, int],
        uneven: Sequence[UnevenSplit] = (),
    ) -> dict[str, int] | None:
        """The sizes at which a graph equals the original, if it does."""
        if uneven:
            # Zeros beyond an end and minus infinity are no elements of a field.
            tested = self._sizes_within(self.budget, graph, sizes, uneven)
            return tested if same_numbers(self.graph, graph, tested) else None
        for budget in (self.budget, _SMALL):
            tested = self._sizes_within(budget, graph, sizes)
            reference = self._reference(tested)
            if reference.equals(graph, tested):
                return tested
            if reference.roots_hold:
                break
            # On large tensors roots have signs, by which equal graphs may differ.
        return None

    def _reference(self, sizes: Mapping[str, int]) -> Reference:
        from cleave.passes.superoptimize.equivalence import Reference

        own = {name: sizes[name] for name in self.graph.symbol_names}
        key = tuple(own.items())
        if key not in self._references:
            self._references[key] = Reference(self.graph, own, self.seed)
        return self._references[key]

    def _sizes_within(
        self,
        budget: int,
        graph: GraphOp,
        sizes: Mapping[str, int],
        uneven: Sequence[UnevenSplit] = (),
    ) -> dict[str, int]:
        """
        Sizes at which no tensor has more elements than the budget allows: the given
        ones, the largest halved as often as needed, counts as they are. Chunks become
        what holds the halved dim, and more.
        """
        shrunk = dict(sizes)
        counts = split_counts(graph)
        fixed = {*counts, *(name for s in uneven for name in (s.count, s.chunk))}
        shapes = {
            cast(TensorType, value.type).dims
            for tested in (self.graph, graph)
            for op in tested.operators
            for value in (*op.operands, *op.results)
        }
        while any(
            prod(evaluate(dim, shrunk) for dim in shape) > budget for shape in shapes
        ):
            for name in sorted(sizes, key=shrunk.__getitem__, reverse=True):
                divisor = lcm(
                    *(sizes[s] for s, dim in counts.items() if name in names_of(dim))
                )
                half = shrunk[name] // 2 // divisor * divisor
                if name not in fixed and half:
                    shrunk[name] = half
                    for split in uneven:
                        if split.extent == name:
                            shrunk[split.chunk] = half // sizes[split.count] + 1
                    break
            else:
                break
        return shrunk


def split_counts(graph: GraphOp) -> dict[str, Dim]:
    """The counts by which a graph splits, with the dims that they divide."""
    return {
        str(fact.lhs): fact.rhs
        for fact in graph.facts
        if fact.relation == "|" and str(fact.lhs) in graph.symbol_names
    }
