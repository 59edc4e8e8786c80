"""Which sizes the form `persistent` takes: rules of wgmma, TMA, registers and SMEM."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from cleave.dialects.algebra.dtypes import dtype_name, element_bytes
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of, value_text
from cleave.dialects.itgraph.parts import View, tensor_type
from cleave.dialects.itgraph.tmap import TMap
from cleave.lowering.hardware import Hardware
from cleave.lowering.tilelang.forms.persistent.resources import resources_of
from cleave.lowering.tilelang.forms.persistent.structure import Structure
from cleave.lowering.tilelang.forms.persistent.warpgroups import (
    REGISTERS_BESIDE_TILES,
    REGISTERS_BESIDE_WGMMA,
    WARPGROUP,
    available_registers,
    launch_registers,
)

WGMMA_ROWS = 64
WGMMA_COLUMNS = 16
"""TileLang takes no multiples of 8 for each warpgroup."""
MOST_WGMMA_COLUMNS = 256
WGMMA_DEPTH = 16
MOST_TMA_ELEMENTS = 256
"""Of one dim of the box that a bulk copy moves."""


def broken_rules(
    kernel: KernelOp, structure: Structure, facts: Facts, hardware: Hardware
) -> Iterator[str]:
    """What is wrong with sizes that have values, most basic first."""
    for instruction in ("wgmma", "tma"):
        if instruction not in hardware.instructions:
            yield f"{hardware.name} has no {instruction}"
    threads = kernel.threads.value.data if kernel.threads else WARPGROUP
    if threads % WARPGROUP or threads + WARPGROUP > hardware.threads_per_block:
        yield f"{threads} computing threads are no warpgroups of {WARPGROUP}"
        return
    for op in structure.matmuls:
        yield from _matmul_rules(op, structure, threads // WARPGROUP, facts, hardware)
    yield from _copy_rules(kernel, structure, facts)
    resources = resources_of(structure, facts)
    registers = resources.registers(threads)
    available = available_registers(threads // WARPGROUP, hardware)
    if isinstance(registers, int) and registers > available - REGISTERS_BESIDE_TILES:
        yield (
            f"tiles take {registers} registers of each of {threads} threads, which "
            f"have {available} and need {REGISTERS_BESIDE_TILES} for the rest"
        )
    stages = kernel.stages.value.data if kernel.stages else 2
    if stages < 2:
        yield "one stage; loads are to be ahead of the steps"
    smem = resources.smem_bytes(stages)
    if isinstance(smem, int) and smem > hardware.smem_bytes_per_block:
        yield (
            f"{stages} stages take {smem} bytes of SMEM, a threadblock has "
            f"{hardware.smem_bytes_per_block}"
        )


# Tensor cores


def _matmul_rules(
    op: Operator, structure: Structure, consumers: int, facts: Facts, hardware: Hardware
) -> Iterator[str]:
    elements = {type_.element_type for type_ in op.operand_types}
    narrow = [dtype_name(e) for e in elements if element_bytes(e) == 2]
    if len(narrow) != 1:
        names = ", ".join(sorted(map(dtype_name, elements)))
        yield f"'{op.name}' op: operands are {names}; wgmma takes one type of 16 bits"
    dims = op.result_type.dims
    if any(facts.resolve(dim) != 1 for dim in dims[:-2]):
        yield f"'{op.name}' op: a tile is more than one element of a batch dim"
    rows, columns = dims[-2:]
    (depth,) = op.expression.reduced
    by_rows = structure.divides_rows
    row_unit = WGMMA_ROWS * (consumers if by_rows else 1)
    column_unit = WGMMA_COLUMNS * (1 if by_rows else consumers)
    for dim, unit, what in (
        (rows, row_unit, "rows"),
        (columns, column_unit, "columns"),
        (depth, WGMMA_DEPTH, "steps"),
    ):
        size = facts.resolve(dim)
        if isinstance(size, int) and size % unit:
            yield (
                f"'{op.name}' op: {dim} is {size}; {consumers} warpgroups that divide "
                f"{'rows' if by_rows else 'columns'} take {what} in multiples of {unit}"
            )
    width = facts.resolve(columns)
    if not isinstance(width, int):
        return
    width //= 1 if by_rows else consumers
    launch = launch_registers(consumers, hardware)
    if width > MOST_WGMMA_COLUMNS or width // 2 + REGISTERS_BESIDE_WGMMA > launch:
        yield (
            f"'{op.name}' op: {width} columns of a warpgroup are too many for one "
            f"wgmma at {launch} registers a thread"
        )


# Bulk copies


def _copy_rules(kernel: KernelOp, structure: Structure, facts: Facts) -> Iterator[str]:
    for level in (kernel, structure.loop):
        for argument, view in zip(level.view_arguments, level.views, strict=True):
            memory = memory_of(argument)
            if memory is not None and memory.space == "smem":
                yield from _tma_rules(*_in_tensor(view, level, kernel), facts)
    for value, result, tmap in zip(
        kernel.yielded, kernel.results, kernel.output_tmaps, strict=True
    ):
        if value.owner in structure.staged:
            yield from _tma_rules(result, tmap, facts)


def _in_tensor(view: View, level: Level, kernel: KernelOp) -> tuple[SSAValue, TMap]:
    """The tensor in GMEM that a view of a level shows a tile of, and which."""
    if level is kernel:
        return view.source, view.tmap
    outer = kernel.views[kernel.view_arguments.index(view.source)]
    return outer.source, outer.tmap.then(view.tmap)


def _tma_rules(tensor: SSAValue, tmap: TMap, facts: Facts) -> Iterator[str]:
    type_ = tensor_type(tensor)
    size = element_bytes(type_.element_type)
    unit = 16 // size
    name = f"tensor {value_text(tensor, 'without a name')}"
    kept = [
        (facts.resolve(dim), facts.resolve(extent), facts.resolve(offset))
        for dim, extent, offset in zip(type_.dims, tmap.tile, tmap.offsets, strict=True)
        if facts.resolve(dim) != 1
    ]
    if not kept:
        return
    row, width, begin = kept[-1]
    if len(kept) > 1 and not facts.divides(unit, row):
        yield (
            f"{name}: bulk copies take rows of a multiple of 16 bytes, and {row} "
            f"elements of {size} bytes are {_bytes_text(row, size)}"
        )
    if isinstance(width, int) and not facts.divides(unit, begin):
        yield (
            f"{name}: bulk copies begin at multiples of 16 bytes, and a tile begins at "
            f"element {begin} of {size} bytes"
        )
    if isinstance(width, int) and width * size % 16:
        yield f"{name}: a tile of {width} elements is no multiple of 16 bytes wide"
    for _, extent, _ in kept[:-1] if len(kept) > 1 else kept:
        if isinstance(extent, int) and extent > MOST_TMA_ELEMENTS:
            yield (
                f"{name}: a tile of {extent} elements, and bulk copies take "
                f"{MOST_TMA_ELEMENTS} along one dim"
            )


def _bytes_text(row: Dim, size: int) -> str:
    return f"{row * size}" if isinstance(row, int) else "of unknown size"
