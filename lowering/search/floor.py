"""The least time that a graph could take on a GPU."""

from __future__ import annotations

from math import prod

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim
from cleave.lowering.hardware import Hardware


def floor_ms(graph: GraphOp, hardware: Hardware) -> float | None:
    """
    Milliseconds for each input read once, each result written once, and the matrix
    products as the graph has them, perfectly overlapped and without a launch. An equal
    graph with fewer products may be faster. None if a size is not known.
    """
    facts = graph.facts

    def size(dims: tuple[Dim, ...]) -> int | None:
        values = [facts.resolve(dim) for dim in dims]
        numbers = [value for value in values if isinstance(value, int)]
        return prod(numbers) if len(numbers) == len(values) else None

    moved = 0
    for type_ in [*graph.input_types, *graph.output_types]:
        if (elements := size(type_.dims)) is None:
            return None
        moved += elements * element_bytes(type_.element_type)
    flops = 0
    for op in graph.operators:
        if op.ON_TENSOR_CORES:
            points = size((*op.result_type.dims, *op.expression.reduced))
            if points is None:
                return None
            flops += 2 * points
    return hardware.floor_seconds(flops, moved) * 1e3
