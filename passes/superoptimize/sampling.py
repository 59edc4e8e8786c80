"""
Inputs for fingerprints: random, and such that the graph's square roots are roots.

`root(x) ** 2 == x` holds in the field only for squares, half of the residues, as it does
in the reals only for non-negative numbers. So many samples are drawn at once, the graph
is evaluated on all of them, and for each trial one sample is chosen in which everything
under a root is a square (superoptimizer.md 3.2). Where none is found, the laws of roots
are lost and with them some graphs; nothing becomes unsound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cleave.passes.superoptimize.field import TRIALS, Field, FieldValue
from cleave.passes.superoptimize.graph import Number, SearchGraph, Source
from cleave.passes.superoptimize.semantics import Dim, Undefined

_SAMPLES = (1 << 6, 1 << 10, 1 << 14)
_ATTEMPTS = 8


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

    Raises Undefined if it is not defined for any inputs, say because it divides by zero.
    """
    error: Undefined | None = None
    for attempt in range(_ATTEMPTS):
        try:
            return _draw(graph, extents, seed * _ATTEMPTS + attempt)
        except Undefined as undefined:
            error = undefined
    assert error is not None
    raise error


def _draw(graph: SearchGraph, extents: Mapping[Dim, int], seed: int) -> Sample:
    chosen = np.arange(TRIALS)
    roots_hold = True
    for samples in (TRIALS, *_SAMPLES):
        field = Field(seed, extents.__getitem__, samples)
        field.squares = []
        sources = draw_sources(graph, field)
        graph.evaluate(field, sources)
        suitable = np.ones(samples, dtype=np.bool_)
        for squares in field.squares:
            suitable &= squares
        by_trial = [
            np.flatnonzero(suitable & (field.trial == t)) for t in range(TRIALS)
        ]
        if roots_hold := all(map(len, by_trial)):
            chosen = np.array([indices[0] for indices in by_trial])
            break
    else:
        sources = draw_sources(graph, Field(seed, extents.__getitem__))
    picked = {
        source: value.map(lambda x: x[chosen]) for source, value in sources.items()
    }
    return Sample(Field(seed, extents.__getitem__), picked, roots_hold)


def draw_sources(graph: SearchGraph, field: Field) -> dict[Source, FieldValue]:
    """A value for every source of the graph: its number, or a random tensor."""
    sources: dict[Source, FieldValue] = {}
    for leaf in graph.leaves:
        if leaf.source not in sources:
            match leaf.source:
                case Number(value=value):
                    sources[leaf.source] = field.number(value)
                case _:
                    sources[leaf.source] = field.random(leaf.source_shape)
    return sources
