"""
The numerical gate for what the search found: adversarial inputs, before one may win.

It judges the graphs that the kernels of a plan compute, on small sizes in NumPy. Tiles
change the order of sums only, and are checked by other means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import SymbolicDim
from cleave.lowering.compilation.reduced_sizes import GraphSizes, SignedParams
from cleave.lowering.compilation.tile_check import bind
from cleave.lowering.gate.executors import Array
from cleave.lowering.gate.gate import NumericalGate
from cleave.lowering.numpy_algebra import ExecutionError, execute_graph
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partitioning.piece import Input, piece_of

SIZE = 64
"""What sizes are cut down to, as far as facts allow it."""


class GraphGate:
    """The gate of one graph, which judges each graph that equals it once."""

    def __init__(self, graph: GraphOp) -> None:
        self._names = graph.symbol_names
        self._sizes = _small_sizes(graph)
        self._graph = graph.clone()
        bind(self._graph, self._sizes, self._names)
        self._gate: NumericalGate | None = None
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

    def _judged(self, graphs: Sequence[GraphOp]) -> str | None:
        if self._gate is None:
            self._gate = NumericalGate(self._graph)
        steps: list[GraphOp] = []
        for graph in graphs:
            rounded = graph.clone()
            bind(rounded, self._sizes, self._names)
            insert_casts(rounded)
            steps.append(rounded)
        try:
            reasons = self._gate.try_run(lambda *inputs: _run(steps, inputs)).reasons
        except ExecutionError as error:
            return f"cannot be executed on small sizes: {error}"
        return f"inexact for {reasons[0]}" if reasons else None


def _small_sizes(graph: GraphOp) -> dict[str, int]:
    signed = SignedParams.of(graph, GraphSizes.of(graph).sizes)
    # A pass may have computed a number from a size that a constant has the value of.
    constants = [value for op in graph.operators for value in op.params.values()]
    kept = {n for dim in constants if isinstance(dim, SymbolicDim) for n in dim.names}
    return GraphSizes.of(graph).shrunk(
        lambda name: [] if name in kept else [SIZE], signed.keep
    )


def _run(graphs: Sequence[GraphOp], inputs: Sequence[Array]) -> list[Array]:
    """The results of a whole graph from those of its pieces."""
    outputs: dict[int, Array] = {}
    computed: list[list[Array]] = []
    for graph in graphs:
        piece = piece_of(graph)
        operands = inputs
        if piece is not None:
            operands = [
                inputs[each.position]
                if isinstance(each, Input)
                else computed[each.number][each.result]
                for each in piece.operands
            ]
        with np.errstate(all="ignore"):
            results = execute_graph(graph, operands, precision="rounded")
        computed.append(results)
        places = range(len(results)) if piece is None else piece.results
        for place, result in zip(places, results, strict=True):
            if place is not None:
                outputs[place] = result
    return [outputs[position] for position in sorted(outputs)]
