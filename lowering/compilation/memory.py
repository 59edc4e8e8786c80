"""Whether the tensors of a graph fit into the memory of a GPU."""

from __future__ import annotations

from math import prod

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware


def require_memory(graph: GraphOp, hardware: Hardware) -> None:
    """
    Raises CompilationError if not even inputs and results fit into memory. Those with a
    dim that is only known at run time do not count.
    """
    facts = graph.facts
    taken = 0
    for type_ in [*graph.input_types, *graph.output_types]:
        dims = [facts.resolve(dim) for dim in type_.dims]
        sizes = [dim for dim in dims if isinstance(dim, int)]
        if len(sizes) == len(dims):
            taken += prod(sizes) * element_bytes(type_.element_type)
    if taken > hardware.memory_bytes:
        raise CompilationError(
            f"@{graph.graph_name}: inputs and results take {taken / 1e9:,.0f} GB, "
            f"but {hardware.name} has {hardware.memory_bytes / 1e9:,.0f} GB"
        )
