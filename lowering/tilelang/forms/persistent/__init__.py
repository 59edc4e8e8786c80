"""
The form `persistent`: a hand-written, persistent, warp-specialized matmul kernel.

A threadblock computes one output tile after the other, as many threadblocks as there
are multiprocessors. One warpgroup, the producer, loads tiles by bulk copies (TMA) into
a ring of stages, across the ends of output tiles; the others, the consumers, issue
asynchronous matmuls (wgmma), one step ahead of the one that they wait for. While they
are in the epilogue of a tile, the first steps of the next one are loaded already, and
its stores are under way while the next one is computed.

The structure is that of CUTLASS's cooperative kernels; what decides its speed was
measured on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import memory_of, plan_of, set_memory
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.parts import tensor_type
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.hardware import Hardware
from cleave.lowering.tilelang.forms.form import KernelForm, Setting
from cleave.lowering.tilelang.forms.persistent.resources import (
    Resources,
    resources_of,
)
from cleave.lowering.tilelang.forms.persistent.rules import broken_rules
from cleave.lowering.tilelang.forms.persistent.structure import Misfit, structure_of
from cleave.lowering.tilelang.forms.persistent.text import PersistentEmitter
from cleave.lowering.tilelang.kernel import EmissionContext, KernelText

PASS_CONFIGS = {
    "tl.disable_warp_specialized": True,
    "tl.disable_thread_storage_sync": True,
}
"""The kernel divides its warps and synchronizes them itself."""


class PersistentForm(KernelForm):
    """Matmuls of loaded tiles in one loop, then elementwise operators."""

    name: ClassVar = "persistent"

    def fits(self, kernel: KernelOp, hardware: Hardware) -> str | None:
        facts = cast(PlanOp, plan_of(kernel)).facts
        try:
            structure = structure_of(kernel)
        except Misfit as misfit:
            return str(misfit)
        return next(broken_rules(kernel, structure, facts, hardware), None)

    def place(self, kernel: KernelOp) -> None:
        """What the epilogue reads comes by bulk copies, and so into SMEM."""
        facts = cast(PlanOp, plan_of(kernel)).facts
        for argument in kernel.view_arguments:
            memory = memory_of(argument)
            if memory is not None and memory.space != "gmem":
                dims = [facts.resolve(dim) for dim in tensor_type(argument).dims]
                # Consumers read a matrix as their results lie in registers: in pieces
                # of rows that are far apart.
                is_matrix = sum(dim != 1 for dim in dims) > 1
                layout = "swizzled" if is_matrix else "linear"
                set_memory(argument, Memory("smem", layout))

    def options(self, kernel: KernelOp) -> Mapping[str, Sequence[Setting]]:
        return {
            "threads": (128, 256, 384),
            "stages": (2, 3, 4, 5, 6),
            "swizzle": (0, 4, 8, 16),
        }

    def resources(self, kernel: KernelOp) -> Resources:
        """
        What a threadblock takes, for the tile sizes that have no value yet as well.

        Raises Misfit for a kernel that is not of this form.
        """
        facts = cast(PlanOp, plan_of(kernel)).facts
        return resources_of(structure_of(kernel), facts)

    def emit(self, kernel: KernelOp, context: EmissionContext) -> KernelText:
        emitter = PersistentEmitter(kernel, context, structure_of(kernel))
        lines = emitter.lines()
        return KernelText(
            context.function, emitter.parameters, lines, PASS_CONFIGS, ["wgmma", "tma"]
        )
