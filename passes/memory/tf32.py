"""Which f32 operands of matmuls tensor cores read as tf32, straight from SMEM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import f32
from xdsl.ir import BlockArgument, Operation, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level
from cleave.dialects.tensor import TensorType


def takes_wgmma(op: Operator, as_tf32: set[SSAValue]) -> bool:
    """Whether wgmma computes a matmul, as far as its operands decide that."""
    return not _is_single(op) or all(operand in as_tf32 for operand in op.operands)


def read_as_tf32(kernel: KernelOp) -> set[SSAValue]:
    """
    The tensors, and views of them, that only matmuls read for which there is a wgmma.

    It takes tf32 only along rows of both operands, and TileLang 0.1.15 only from tiles
    that are declared as such: with f32 it falls back to mma_sync. A tile that something
    else reads as well stays f32, and with it the other operand.
    """
    views = {view.source for view in kernel.views}
    readers = {source: _readers(source, kernel) for source in views}
    found = set(views)
    while True:
        tiles = {tile for source in found for _, tile in readers[source]}
        kept = {
            source
            for source in found
            if all(_multiplies_rows(op, tiles) for op, _ in readers[source])
        }
        if kept == found:
            break
        found = kept
    return found | {value for source in found for value in _views_of(source, kernel)}


def _readers(source: SSAValue, kernel: KernelOp) -> list[tuple[Operation, SSAValue]]:
    """What reads a tensor, and through which view."""
    views = _views_of(source, kernel)
    return [
        (use.operation, view)
        for view in views
        for use in view.uses
        if not (isinstance(use.operation, Level) and view in use.operation.sources)
    ]


def _views_of(source: SSAValue, level: Level) -> list[BlockArgument]:
    """All views of a value that a level and those in it open."""
    return list(_opened(source, level))


def _opened(source: SSAValue, level: Level) -> Iterator[BlockArgument]:
    for argument, of in zip(level.view_arguments, level.sources, strict=True):
        if of is source:
            yield argument
            for use in argument.uses:
                if isinstance(inner := use.operation, Level):
                    yield from _opened(argument, inner)


def _multiplies_rows(op: Operation, tiles: set[SSAValue]) -> bool:
    """Whether an operator is a matmul of f32 rows with f32 rows, all in these tiles."""
    if not isinstance(op, Operator) or not _is_single(op):
        return False
    by_rows = "transpose_rhs" in op.params and "transpose_lhs" not in op.params
    return by_rows and all(operand in tiles for operand in op.operands)


def _is_single(op: Operator) -> bool:
    types = [cast(TensorType, operand.type) for operand in op.operands]
    return op.ON_TENSOR_CORES and all(type_.element_type == f32 for type_ in types)
