"""
The numerical gate for what the search found: adversarial inputs, before one may win.

It judges the graphs that the kernels of a plan compute, on small sizes in NumPy. Tiles
change the order of sums only, and are checked by other means.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.views import Reshape
from cleave.dialects.dims import names_of
from cleave.dialects.wording import counted
from cleave.lowering.compilation.reduced_sizes import (
    GraphSizes,
    SignedParams,
    sizes_in_constants,
)
from cleave.lowering.compilation.tile_check import bind
from cleave.lowering.gate.executors import Array
from cleave.lowering.gate.gate import NumericalGate
from cleave.lowering.numpy_algebra import ExecutionError, execute_graph
from cleave.lowering.numpy_pieces import execute_pieces
from cleave.lowering.search.dim_splits import added_splits, parts_for
from cleave.lowering.search.plan_check import of_one_plan
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partitioning.piece import piece_of

REDUCED_SIZE = 64
"""What sizes of reduced dims are cut down to, as far as facts allow it."""
OTHER_SIZE = 16


class GraphGate:
    """The gate of one graph, which judges each graph that equals it once."""

    def __init__(self, graph: GraphOp) -> None:
        self._sizes = _small_sizes(graph)
        self._graph = graph.clone()
        bind(self._graph, self._sizes, graph.symbol_names)
        self._gate: NumericalGate | None = None
        self._excused: set[str] = set()
        """Families that the graph itself is not right for, with its roundings."""
        self._reasons: dict[tuple[str, ...], str | None] = {}

    def reason(self, graphs: Sequence[GraphOp]) -> str | None:
        """
        Why a plan of these graphs, which hand values on, may not win, with the inputs
        that show it; None if it may.
        """
        key = tuple(map(str, graphs))
        if key not in self._reasons:
            self._reasons[key] = self._judged(graphs)
        return self._reasons[key]

    def loss(self) -> str | None:
        """
        By which inputs the graph as it was written loses its results in float32, and
        how; None if it does not. Plans that compute the same may pass nevertheless.
        """
        losses = self._made().losses()
        if not losses:
            return None
        more = f", and in {counted(len(losses) - 1, 'more case')}"
        return losses[0] + (more if len(losses) > 1 else "")

    def _made(self) -> NumericalGate:
        if self._gate is None:
            self._gate = NumericalGate(self._graph)
            report = self._gate.try_graph(self._gate.safe)
            self._excused = {each.family for each in report.families if each.reasons}
        return self._gate

    def _judged(self, graphs: Sequence[GraphOp]) -> str | None:
        gate = self._made()
        try:
            with of_one_plan():
                steps = self._rounded(graphs)
                report = gate.try_run(lambda *inputs: _run(steps, inputs))
        except ExecutionError as error:
            return f"cannot be executed on small sizes: {error}"
        for family in report.families:
            if family.reasons and family.family not in self._excused:
                return f"inexact for {family.reasons[0]}"
        return None

    def _rounded(self, graphs: Sequence[GraphOp]) -> list[GraphOp]:
        """Pieces with the gate's sizes, in few parts, and with their roundings."""
        added = [added_splits(each, self._graph) for each in graphs]
        splits = dict.fromkeys(chain.from_iterable(added))
        sizes = {**self._sizes, **parts_for(splits, self._sizes)}
        steps = [graph.clone() for graph in graphs]
        for step in steps:
            bind(step, sizes, [*sizes])
            insert_casts(step)
        return steps


def _small_sizes(graph: GraphOp) -> dict[str, int]:
    signed = SignedParams.of(graph, GraphSizes.of(graph).sizes)
    kept = sizes_in_constants(graph)
    reduced = {
        name
        for op in graph.operators
        if not isinstance(op, Reshape)  # not all have an expression, and none reduces
        for dim in op.expression.reduced
        for name in names_of(dim)
    }

    def candidates(name: str) -> Sequence[int]:
        if name in kept:
            return []
        return [REDUCED_SIZE] if name in reduced else [OTHER_SIZE, REDUCED_SIZE]

    return GraphSizes.of(graph).shrunk(candidates, signed.keep)


def _run(graphs: Sequence[GraphOp], inputs: Sequence[Array]) -> list[Array]:
    """The results of a whole graph, or of all of its pieces."""
    with np.errstate(all="ignore"):
        if piece_of(graphs[0]) is not None:
            return execute_pieces(graphs, inputs, precision="rounded")
        (graph,) = graphs
        return execute_graph(graph, inputs, precision="rounded")
