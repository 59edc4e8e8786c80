"""How many bytes the pieces of a graph move, each tensor read once a piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias, cast

from xdsl.ir import Attribute, SSAValue

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate
from cleave.dialects.tensor import TensorType
from cleave.passes.partitioning.draft import Draft, elements_of

Sizes: TypeAlias = Mapping[str, int]

SIZE = 1024
"""Taken for the size of a symbol that no fact binds."""


def sizes_of(graph: GraphOp) -> dict[str, int]:
    """A size for every symbol of a graph."""
    binding = graph.facts.binding
    return {
        name: size if isinstance(size := binding.get(name), int) else SIZE
        for name in graph.symbol_names
    }


def bytes_of(value: SSAValue, element: Attribute, sizes: Sizes) -> int:
    """Bytes of a tensor with elements of this type."""
    dims = cast(TensorType, value.type).dims
    return prod(evaluate(dim, sizes) for dim in dims) * element_bytes(element)


def traffic_of(drafts: Sequence[Draft], sizes: Sizes) -> int:
    """Bytes that the pieces of a graph read and write, in all."""
    elements = elements_of(drafts)
    total = 0
    for draft in drafts:
        for value in draft.operands:
            own = cast(TensorType, value.type).element_type
            total += bytes_of(value, elements.get(value, own), sizes)
        for result in draft.results(elements):
            total += bytes_of(result.value, result.type.element_type, sizes)
    return total
