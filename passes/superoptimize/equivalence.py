"""
The final test: whether two `algebra.graph`s compute the same, at given sizes.

Both are imported afresh and evaluated on common fingerprints, so that this tests what
stands in the IR and not what the search believes. Sizes may be the original ones; then
sums are long, and `modular.matmul` takes them over limbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate
from cleave.passes.superoptimize.field import FieldValue
from cleave.passes.superoptimize.graph import Generated, Number, Source
from cleave.passes.superoptimize.importing import Imported, import_graph
from cleave.passes.superoptimize.sampling import Sample, draw
from cleave.passes.superoptimize.semantics import Shape, Undefined


class Reference:
    """
    A graph on random inputs, against which others are tested.

    Raises:
        ImportFailed, Undefined, NotImplementedError: the graph cannot be tested.
        KeyError: a symbol has no size.
    """

    def __init__(self, graph: GraphOp, sizes: Mapping[str, int], seed: int = 1) -> None:
        self.sizes = sizes
        imported = import_graph(graph)
        extents = _extents(imported, sizes)
        self.sample: Sample = draw(imported.graph, extents, seed)
        self._sources = {
            _portable(source, extents): value
            for source, value in self.sample.sources.items()
        }
        self._outputs = imported.graph.results(self.sample.field, self.sample.sources)

    @property
    def roots_hold(self) -> bool:
        """
        Whether `sqrt(x) * sqrt(x)` is `x` on these inputs. If not, two equal graphs may
        differ by the sign of a root; different graphs differ all the same.
        """
        return self.sample.roots_hold

    def equals(self, graph: GraphOp, sizes: Mapping[str, int]) -> bool:
        """
        Whether a graph gives the same results. `sizes` are those of its symbols, which
        may be more than the reference has. Raises as the constructor does, except that
        a graph that divides by zero here is just different.
        """
        return self.equals_imported(import_graph(graph), sizes)

    def equals_imported(self, imported: Imported, sizes: Mapping[str, int]) -> bool:
        """The same for a graph that has been imported."""
        extents = _extents(imported, sizes)
        self.sample.field.extent = extents.__getitem__
        sources: dict[Source, FieldValue] = {}
        for leaf in imported.graph.leaves:
            key = _portable(leaf.source, extents)
            if key not in self._sources:
                match leaf.source:
                    case Number(value=value):
                        self._sources[key] = self.sample.field.number(value)
                    case _:
                        shape = leaf.source_shape
                        self._sources[key] = self.sample.field.random(shape)
            sources[leaf.source] = self._sources[key]
        try:
            outputs = imported.graph.results(self.sample.field, sources)
        except Undefined:
            return False
        return len(outputs) == len(self._outputs) and all(
            np.array_equal(a.p, b.p)
            for a, b in zip(outputs, self._outputs, strict=True)
        )


def _extents(imported: Imported, sizes: Mapping[str, int]) -> dict[Any, int]:
    """The extent of every dim of an imported graph."""
    return {1: 1} | {dim: evaluate(name, sizes) for dim, name in imported.names.items()}


def _portable(source: Source, extents: Mapping[Any, int]) -> object:
    """A source by what it has in common with the same one in another graph."""
    match source:
        case Generated(step=step, shape=shape):
            return step, _of(shape, extents)
        case _:
            return source


def _of(shape: Shape, extents: Mapping[Any, int]) -> tuple[int, ...]:
    return tuple(extents[dim] for dim in shape)
