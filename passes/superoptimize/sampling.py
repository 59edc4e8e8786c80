"""
Inputs for fingerprints: random, and such that the graph's square roots are roots.

In the field `root(x) ** 2 == x` holds only for squares, half of the residues, as in the
reals only for non-negative numbers. So inputs are drawn again, element by element,
until everything that the graph takes a root of is a square:
first it is found which elements each radicand depends on, and then those of the
radicands that are no squares are redrawn. Where that does not succeed the laws of roots
are lost, and with them some graphs; nothing becomes unsound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleave.passes.superoptimize.field import (
    TRIALS,
    Field,
    FieldValue,
    Radicand,
)
from cleave.passes.superoptimize.graph import Number, SearchGraph, Source
from cleave.passes.superoptimize.semantics import Dim, Shape, Undefined

_ATTEMPTS = 8
_ROUNDS = 100
_LARGEST = 2000
"""Elements of inputs up to which it is worth finding out what roots depend on."""


@dataclass(frozen=True)
class Sample:
    """A field, and the values of a graph's sources in it."""

    field: Field
    sources: Mapping[Source, FieldValue]
    roots_hold: bool
    """Whether the argument of every square root of the graph is a square."""


def draw(graph: SearchGraph, extents: Mapping[Dim, int], seed: int) -> Sample:
    """
    Draw inputs for which the graph is defined.

    Raises Undefined if it is not defined for any inputs, say because it divides by
    zero.
    """
    error: Undefined | None = None
    for attempt in range(_ATTEMPTS):
        try:
            return _Sampler(graph, extents, seed * _ATTEMPTS + attempt).draw()
        except Undefined as undefined:
            error = undefined
    assert error is not None
    raise error


class _Sampler:
    def __init__(
        self, graph: SearchGraph, extents: Mapping[Dim, int], seed: int
    ) -> None:
        self.graph = graph
        self.extents = extents
        self.seed = seed
        self.field = Field(seed, extents.__getitem__)
        self.shapes: dict[Source, Shape] = {
            leaf.source: leaf.source_shape
            for leaf in graph.leaves
            if not isinstance(leaf.source, Number)
        }

    def draw(self) -> Sample:
        tensors = {
            source: self.field.random(shape) for source, shape in self.shapes.items()
        }
        is_square = _joined([r.is_square for r in self._radicands(self.field, tensors)])
        elements = sum(tensor.p.size // TRIALS for tensor in tensors.values())
        if not is_square.all() and elements <= _LARGEST:
            depends = self._dependencies(tensors)
            for _ in range(_ROUNDS):
                self._redraw(tensors, depends, is_square)
                radicands = self._radicands(self.field, tensors)
                is_square = _joined([r.is_square for r in radicands])
                if is_square.all():
                    break
        sources = self._with_numbers(self.field, tensors)
        return Sample(self.field, sources, bool(is_square.all()))

    def _with_numbers(
        self, field: Field, tensors: Mapping[Source, FieldValue]
    ) -> dict[Source, FieldValue]:
        values = dict(tensors)
        for leaf in self.graph.leaves:
            if isinstance(leaf.source, Number):
                values[leaf.source] = field.number(leaf.source.value)
        return values

    def _radicands(
        self, field: Field, tensors: Mapping[Source, FieldValue]
    ) -> Sequence[Radicand]:
        field.radicands = []
        self.graph.evaluate(field, self._with_numbers(field, tensors))
        radicands, field.radicands = field.radicands, None
        return radicands

    def _dependencies(self, tensors: Mapping[Source, FieldValue]) -> NDArray[np.bool_]:
        """
        Which elements of the inputs each element under a root depends on: [elements
        under roots, elements of inputs]. Found by changing one input element at a time.
        """
        elements = sum(tensor.p.size // TRIALS for tensor in tensors.values())
        samples = TRIALS * (elements + 1)
        field = Field(self.seed, self.extents.__getitem__, samples)
        # Sample i changes element i // TRIALS - 1 of the inputs for trial i % TRIALS.
        changed: dict[Source, FieldValue] = {}
        position = np.arange(samples).reshape(-1, 1) // TRIALS
        start = 1
        for source, tensor in tensors.items():
            size = tensor.p.size // TRIALS
            mask = np.equal(position, np.arange(start, start + size))
            fresh = field.random(self.shapes[source])
            changed[source] = _where(mask, fresh, tensor.map(lambda x: x[field.trial]))
            start += size
        radicands = _joined([r.p for r in self._radicands(field, changed)])
        first = radicands[::TRIALS]
        return (first[1:] != first[0]).T

    def _redraw(
        self,
        tensors: dict[Source, FieldValue],
        depends: NDArray[np.bool_],
        is_square: NDArray[np.bool_],
    ) -> None:
        """
        Draw again what non-squares depend on, but not what squares depend on too, where
        that leaves anything.
        """
        wrong = (~is_square).astype(np.int64) @ depends > 0
        right = is_square.astype(np.int64) @ depends > 0
        only_wrong = wrong & ~right
        mask = np.where(only_wrong.any(axis=1, keepdims=True), only_wrong, wrong)
        start = 0
        for source, tensor in tensors.items():
            size = tensor.p.size // TRIALS
            fresh = self.field.random(self.shapes[source])
            tensors[source] = _where(mask[:, start : start + size], fresh, tensor)
            start += size


def _where(mask: NDArray[np.bool_], a: FieldValue, b: FieldValue) -> FieldValue:
    """`a` where the mask [samples, elements] holds, else `b`."""
    mask = mask.reshape(a.p.shape)
    assert a.q is not None
    assert b.q is not None
    return FieldValue(np.where(mask, a.p, b.p), np.where(mask, a.q, b.q))


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All elements of every sample side by side: [samples, elements]."""
    if not arrays:
        return np.ones((TRIALS, 0), dtype=np.bool_)
    return np.concatenate([x.reshape(len(x), -1) for x in arrays], axis=1)
