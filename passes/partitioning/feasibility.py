"""Whether one kernel can compute a graph, as far as its output tiles tell."""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import SymbolicDim
from cleave.dialects.tensor import TensorType
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partitioning.draft import stored
from cleave.passes.partitioning.traffic import Sizes
from cleave.passes.schedule_blocks import divides_outputs, schedule_blocks

REGISTERS = 1 << 16
"""
Of 32 bits in a multiprocessor (NVIDIA's tuning guides, from Kepler to Blackwell).
Computed tiles are held in them.
"""
EVEN = 128
"""
Elements that threads divide. Rows of other lengths are padded, and what is padded is
not iterated, so that what is loaded, computed and stored is in registers together.
"""
TENSOR_CORE_ROWS = 64
"""Of a tile that tensor cores compute, at least."""


def why_not_one_kernel(graph: GraphOp, sizes: Sizes) -> str | None:
    """
    Why no kernel computes a graph, or None. There has to be a schedule, and what is
    left of the outputs in a threadblock has to fit into its registers when every dim is
    divided that can be.
    """
    graph = graph.clone()
    try:
        insert_casts(graph)
    except PassFailedException as error:
        return str(error)
    types = [cast(TensorType, stored(v).type) for v in graph.return_op.values]
    names = {
        str(dim)
        for type_ in types
        for dim in type_.dims
        if isinstance(dim, SymbolicDim) and str(dim) in graph.symbol_names
    }
    if divides_outputs(graph, dict.fromkeys(sorted(names))):
        return None
    try:
        schedule_blocks(graph, {})
    except PassFailedException as error:
        return str(error)
    whole = {name for name in names if not divides_outputs(graph, {name: None})}
    on_tensor_cores = any(op.ON_TENSOR_CORES for op in graph.operators)
    for type_ in types:
        tile = prod(sizes[str(dim)] for dim in type_.dims if str(dim) in whole)
        rows = TENSOR_CORE_ROWS if on_tensor_cores and tile > 1 else 1
        if tile * rows > (REGISTERS if tile % EVEN == 0 else REGISTERS // 4):
            return (
                f"every threadblock of @{graph.graph_name} computes all of "
                f"{', '.join(sorted(whole))}, {tile * rows} elements of {type_}"
            )
    return None
