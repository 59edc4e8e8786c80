"""What kernels cannot do for a graph, whatever its tiles: refused at once."""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType
from cleave.lowering.compilation.stated_roundings import require_stated_roundings
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware
from cleave.passes.memory.placement import require_element_types
from cleave.passes.partitioning.splits import splits_of


def require_supported(graph: GraphOp, hardware: Hardware) -> None:
    """
    Raises CompilationError for a graph with a result that is returned twice, a split
    into a number of parts that is not known, an element type that kernels do not
    compute, a matmul that would round f32 inputs, or more inputs and results than fit
    into memory.
    """
    where = f"@{graph.graph_name}"
    returned = [_computed(value) for value in graph.return_op.values]
    for position, value in enumerate(returned):
        if (first := returned.index(value)) != position:
            raise CompilationError(
                f"{where}: results {first} and {position} are one value; return it once"
            )
    facts = graph.facts
    for value, parts, _ in splits_of(graph):
        count = cast(TensorType, value.type).dims[parts]
        if not isinstance(facts.resolve(count), int):
            raise CompilationError(
                f"{where}: the split count {count} has no value; state it, as in "
                f"`where [{count} = 2]`"
            )
    try:
        require_element_types(graph)
        require_stated_roundings(graph)
    except PassFailedException as error:
        raise CompilationError(f"{where}: {error}") from error
    taken = 0
    for type_ in [*graph.input_types, *graph.output_types]:
        dims = [facts.resolve(dim) for dim in type_.dims]
        sizes = [dim for dim in dims if isinstance(dim, int)]
        if len(sizes) == len(dims):
            taken += prod(sizes) * element_bytes(type_.element_type)
    if taken > hardware.memory_bytes:
        raise CompilationError(
            f"{where}: inputs and results take {taken / 1e9:,.0f} GB, "
            f"but {hardware.name} has {hardware.memory_bytes / 1e9:,.0f} GB"
        )


def _computed(value: SSAValue) -> SSAValue:
    """What a value is another shape of."""
    while isinstance(op := value.owner, Operator) and op.KEEPS_ORDER:
        value = op.operands[0]
    return value
