"""The least time that a graph could take on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim
from cleave.lowering.hardware import Hardware


def floor_ms(
    graph: GraphOp, hardware: Hardware, plans: Iterable[Sequence[GraphOp]] = ()
) -> float | None:
    """
    Milliseconds for each input read once, each result written once, and the matrix
    products as the graph has them, perfectly overlapped and without a launch. Where
    plans compute the same with fewer products, in the graphs of their kernels, these
    count. None if a size is not known.
    """
    moved = 0
    for type_ in [*graph.input_types, *graph.output_types]:
        if (elements := _size(graph, type_.dims)) is None:
            return None
        moved += elements * element_bytes(type_.element_type)
    needed = [_flops(graphs) for graphs in ([graph], *plans)]
    known = [flops for flops in needed if flops is not None]
    if needed[0] is None:
        return None
    return hardware.floor_seconds(min(known), moved) * 1e3


def _flops(graphs: Iterable[GraphOp]) -> int | None:
    """Of all matrix products; None if a size is not known."""
    flops = 0
    for graph in graphs:
        for op in graph.operators:
            if op.ON_TENSOR_CORES:
                dims = (*op.result_type.dims, *op.expression.reduced)
                if (points := _size(graph, dims)) is None:
                    return None
                flops += 2 * points
    return flops


def _size(graph: GraphOp, dims: tuple[Dim, ...]) -> int | None:
    values = [graph.facts.resolve(dim) for dim in dims]
    numbers = [value for value in values if isinstance(value, int)]
    return prod(numbers) if len(numbers) == len(values) else None
