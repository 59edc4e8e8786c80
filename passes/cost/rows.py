"""Rows that loops reduce, and tiles of them outside of the loops."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.loop import LoopOp


def rows_meet_tiles(
    kernel: KernelOp, dims: Callable[[SSAValue], tuple[Dim, ...]]
) -> bool:
    """
    Whether a kernel combines one value a row that loops have reduced, or what follows
    from it, with a tile of more elements a row.
    """
    from_loops: set[SSAValue] = set()
    for op in kernel.body.block.ops:
        if isinstance(op, LoopOp):
            from_loops.update(op.results)
        elif isinstance(op, Operator) and op.REDUCTION is None:
            (result,) = op.results
            for row in from_loops.intersection(op.operands):
                if dims(row) != dims(result) and any(dim != 1 for dim in dims(row)):
                    return True
                from_loops.add(result)
    return False
