"""Where views, results and states live, once all copies are explicit."""

from __future__ import annotations

from typing import cast

from xdsl.ir import BlockArgument, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of, plan_of, set_memory
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import TensorType
from cleave.passes.memory.layouts import Layouts

WARPGROUP = 128
"""Threads that issue one wgmma, which covers 64 rows."""


def place_kernel(kernel: KernelOp, layouts: Layouts) -> None:
    """Annotate every view, operator and state of a kernel with its memory."""
    for op in kernel.walk():
        if isinstance(op, Level):
            for argument in op.view_arguments:
                set_memory(argument, _view_memory(op, argument, layouts))
        if isinstance(op, LoopOp):
            for state in op.state_arguments:
                set_memory(state, Memory("rmem", layouts[state]))
        elif isinstance(op, Operator) and op.operands and not isinstance(op, Copy):
            result = op.results[0]
            set_memory(result, Memory("rmem", layouts[result]))


def _view_memory(level: Level, argument: BlockArgument, layouts: Layouts) -> Memory:
    source = level.sources[argument.index]
    held = memory_of(source)
    if held is not None and held.space != "gmem":
        return held  # a part of a tile that is on chip already
    readers = [
        use.operation for use in argument.uses if isinstance(use.operation, Operator)
    ]
    is_sliced = any(isinstance(use.operation, Level) for use in argument.uses)
    if not readers:
        only_stored = not is_sliced and bool(argument.uses)
        return Memory("rmem", "linear") if only_stored else Memory("gmem")
    if any(reader.ON_TENSOR_CORES for reader in readers):
        return Memory("smem", "swizzled")
    # A load inside of a loop is overlapped with the steps before it, which needs SMEM;
    # and a fragment's threads would read rows in pieces.
    meets_fragment = any(
        layouts.get(reader.results[0]) == "fragment" for reader in readers
    )
    if is_sliced or isinstance(level, LoopOp) or meets_fragment:
        return Memory("smem", "linear")
    return Memory("rmem", "linear")


def default_threads(kernel: KernelOp) -> int:
    """A warpgroup for each 64 rows of the matmuls, but one or two; else two."""
    facts = cast(PlanOp, plan_of(kernel)).facts
    rows: list[Dim] = [
        facts.resolve(cast(TensorType, op.results[0].type).dims[-2])
        for op in kernel.walk()
        if isinstance(op, Operator) and op.ON_TENSOR_CORES
    ]
    known = [extent for extent in rows if isinstance(extent, int)]
    if not known:
        return 2 * WARPGROUP
    return WARPGROUP * min(2, max(1, max(known) // 64))


def is_on_chip(value: SSAValue) -> bool:
    """Whether a value is a tile in SMEM or RMEM, not a tensor in GMEM."""
    memory = memory_of(value)
    return memory is not None and memory.space != "gmem"
