"""What a kernel computes for SMEM before its loop."""

from __future__ import annotations

from itertools import takewhile

from xdsl.ir import Block, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import memory_of
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.operators import Copy
from cleave.passes.cost.closed_forms import RegisterTile, product
from cleave.passes.cost.columns import Dims
from cleave.passes.cost.liveness import bytes_of, is_written_in_place
from cleave.passes.cost.origin import Origin


def prelude_tiles(kernel: KernelOp, dims: Dims) -> tuple[RegisterTile, ...]:
    """
    The tiles in registers from which a kernel computes what is in SMEM
    before its first loop. TileLang's planner for one loop (its
    `producer_consumer_ws.cc`) moves to the warps that compute only what their loop
    reads from registers; these tiles are divided over all threads, those of the warps
    that load included.
    """
    block = kernel.body.block
    if not any(isinstance(op, LoopOp) for op in block.ops):
        return ()
    before = list(takewhile(lambda op: not isinstance(op, LoopOp), block.ops))
    found: dict[SSAValue, None] = {}
    stack = [
        op.source
        for op in before
        if isinstance(op, Copy) and op.params["memory"].space == "smem"
    ]
    while stack:
        value = stack.pop()
        if value in found or not _is_computed_in(value, block):
            continue
        found[value] = None
        if isinstance(value.owner, Operator):
            stack += value.owner.operands
    return tuple(
        dict.fromkeys(
            RegisterTile(product(dims(value)), bytes_of(value), "all", Origin(value))
            for value in found
            if not isinstance(value.owner, Operator)
            or not is_written_in_place(value.owner)
        )
    )


def _is_computed_in(value: SSAValue, block: Block) -> bool:
    """Whether a value is in registers, where this block has computed or loaded it."""
    memory = memory_of(value)
    own = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    return own is block and memory is not None and memory.space == "rmem"
