"""
What one threadblock of a planned kernel takes, before anything is compiled.

An estimate from the lifetimes of tiles: an elementwise result may take the registers of
an operand that ends with it, and tiles that do not live at one time share SMEM, though
the backend only manages that in a kernel of one loop. It keeps tiles that are far too
large away from the compiler; what the compiler reports afterwards is what counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import names_of
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of, value_text
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.parts import tensor_type
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.compilation.pipeline import NoProgramError
from cleave.lowering.hardware import Hardware

REGISTERS_FOR_THE_REST = 32
"""Of a thread: addresses, loop counters, and what an elementwise statement needs."""
MOST_CONSUMER_REGISTERS = 240
"""What a thread of a warp-specialized kernel can ask for."""
REGISTER_BYTES = 4


@dataclass(frozen=True)
class Footprint:
    """The most that tiles take at one time, in bytes of one threadblock."""

    smem: int
    registers: int

    def __add__(self, other: Footprint) -> Footprint:
        return Footprint(self.smem + other.smem, self.registers + other.registers)

    def __or__(self, other: Footprint) -> Footprint:
        """Enough for either."""
        return Footprint(
            max(self.smem, other.smem), max(self.registers, other.registers)
        )


NOTHING = Footprint(0, 0)


def require_fit(plan: PlanOp, hardware: Hardware) -> None:
    """Raises NoProgramError if kernels of a plan do not fit, as far as can be told."""
    for kernel in plan.body.block.ops:
        if not isinstance(kernel, KernelOp):
            continue
        taken = footprint(kernel, plan.facts)
        if taken.smem > hardware.smem_bytes_per_block:
            raise NoProgramError(
                f"tiles take {taken.smem} bytes of SMEM, "
                f"a threadblock has {hardware.smem_bytes_per_block}"
            )
        threads = kernel.threads.value.data if kernel.threads else 1
        available = min(
            hardware.registers_per_multiprocessor // threads, MOST_CONSUMER_REGISTERS
        )
        needed = math.ceil(taken.registers / REGISTER_BYTES / threads)
        if needed > available - REGISTERS_FOR_THE_REST:
            raise NoProgramError(
                f"tiles take {needed} registers of each of {threads} threads, "
                f"which have {available} and need {REGISTERS_FOR_THE_REST} for the rest"
            )


def footprint(kernel: KernelOp, facts: Facts) -> Footprint:
    """
    The footprint of a kernel on which `plan-memory` ran.

    Raises NoProgramError for a tile whose size is not a number.
    """
    loops = [op for op in kernel.walk() if isinstance(op, LoopOp)]
    stages = kernel.stages.value.data if kernel.stages else 0
    return _Lifetimes(facts, stages, shares_smem=len(loops) <= 1).of(kernel)


@dataclass(frozen=True)
class _Lifetimes:
    facts: Facts
    stages: int
    shares_smem: bool

    def of(self, level: Level) -> Footprint:
        """The most that the tiles of a level and of its loops take at one time."""
        block = level.body.block
        ops = list(block.ops)
        last_use = _last_uses(block, ops)
        live: dict[SSAValue, Footprint] = {
            argument: self._loaded(level, argument)
            for argument in level.view_arguments
            if self._is_loaded(level, argument)
        }
        kept = NOTHING
        most = _total(live)
        for position, op in enumerate(ops):
            made = self._made(op)
            inner = self.of(op) if isinstance(op, LoopOp) else NOTHING
            in_place = isinstance(op, Operator) and op.ELEMENTWISE
            if not in_place:
                live |= made
                most |= _total(live) + kept + inner
            if not self.shares_smem:
                kept += Footprint(inner.smem, 0)
            for value in [v for v in live if last_use.get(v, -1) <= position]:
                # Steps of a pipelined loop overlap, so what they load does not end.
                if isinstance(level, KernelOp) or value not in level.view_arguments:
                    ended = live.pop(value)
                    if not self.shares_smem:
                        kept += Footprint(ended.smem, 0)
            if in_place:
                live |= made
                most |= _total(live) + kept
        return most

    def _is_loaded(self, level: Level, argument: SSAValue) -> bool:
        """Whether a view has a tile of its own, and is not a part of one."""
        memory = memory_of(argument)
        if memory is None or memory.space == "gmem":
            return False
        index = level.view_arguments.index(argument)
        held = memory_of(level.sources[index])
        return held is None or held.space == "gmem"

    def _loaded(self, level: Level, argument: SSAValue) -> Footprint:
        tile = self._tile(argument)
        is_innermost = not any(isinstance(op, LoopOp) for op in level.body.block.ops)
        if isinstance(level, LoopOp) and is_innermost:
            return Footprint(tile.smem * max(1, self.stages), tile.registers)
        return tile

    def _made(self, op: Operation) -> dict[SSAValue, Footprint]:
        if isinstance(op, LoopOp):
            pairs = zip(op.results, op.state_arguments, strict=True)
            return {result: self._tile(state) for result, state in pairs}
        if not isinstance(op, Operator) or not op.operands or _accumulates(op):
            return {}
        return {op.results[0]: self._tile(op.results[0])}

    def _tile(self, value: SSAValue) -> Footprint:
        memory = memory_of(value)
        if memory is None or memory.space == "gmem":
            return NOTHING
        type_ = tensor_type(value)
        size = element_bytes(type_.element_type)
        for dim in type_.dims:
            extent = self.facts.resolve(dim)
            if not isinstance(extent, int):
                names = ", ".join(sorted(names_of(extent)))
                raise NoProgramError(
                    f"dim {dim} of tile {value_text(value, 'without a name')} has no "
                    f"size: {names} is neither bound nor tiled"
                )
            size *= extent
        return Footprint(size, 0) if memory.space == "smem" else Footprint(0, size)


def _accumulates(op: Operator) -> bool:
    """Whether a reduction is added to a loop's state without a tile of its own."""
    users = [use.operation for use in op.results[0].uses]
    return op.REDUCTION is not None and all(isinstance(u, NextOp) for u in users)


def _last_uses(block: Block, ops: Sequence[Operation]) -> dict[SSAValue, int]:
    """The position of the last operation that uses a value, itself or inside of it."""
    last: dict[SSAValue, int] = {}
    for position, op in enumerate(ops):
        for inner in op.walk():
            for operand in inner.operands:
                last[operand] = position
    return last


def _total(live: dict[SSAValue, Footprint]) -> Footprint:
    return sum(live.values(), NOTHING)
