"""The form `pipelined`: TileLang overlaps the loads of a loop with its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.loop import LoopOp
from cleave.lowering.hardware import Hardware
from cleave.lowering.plan import PassConfig, Requirement
from cleave.lowering.tilelang.forms.form import KernelForm, Setting
from cleave.lowering.tilelang.forms.pipelined_text import PipelinedEmitter
from cleave.lowering.tilelang.kernel import EmissionContext, KernelText
from cleave.passes.memory.tf32 import read_as_tf32, takes_wgmma

SPECIALIZATIONS: Mapping[str, Mapping[str, PassConfig]] = {
    "single-loop": {},
    "role-based": {"tl.enable_auto_warp_specialization": "role_based"},
    "none": {"tl.disable_warp_specialized": True},
}
"""TileLang's settings for the planners that `plan-memory` chooses between."""


class PipelinedForm(KernelForm):
    """
    Loops are `T.Pipelined`; TileLang divides the warps into those that load and those
    that compute, as `specialization` says, and inserts every synchronization.
    """

    name: ClassVar = "pipelined"

    def fits(self, kernel: KernelOp, hardware: Hardware) -> str | None:
        return None

    def options(self, kernel: KernelOp) -> Mapping[str, Sequence[Setting]]:
        return {
            "threads": (128, 256, 384),
            "stages": (1, 2, 3, 4),
            "swizzle": (0, 8),
            "specialization": tuple(SPECIALIZATIONS),
        }

    def emit(self, kernel: KernelOp, context: EmissionContext) -> KernelText:
        specialization = _specialization(kernel)
        has_wgmma = "wgmma" in context.hardware.instructions
        as_tf32 = read_as_tf32(kernel) if has_wgmma else set[SSAValue]()
        required = _required_instructions(
            kernel, context.facts, specialization, as_tf32
        )
        emitter = PipelinedEmitter(
            kernel,
            context,
            divides_warps=specialization != "none",
            uses_wgmma="wgmma" in required,
            as_tf32=as_tf32,
        )
        lines = emitter.lines()
        return KernelText(
            context.function,
            emitter.parameters,
            lines,
            SPECIALIZATIONS[specialization],
            [r for r in required if r != "tma" or emitter.loads_in_bulk],
        )


def _specialization(kernel: KernelOp) -> str:
    chosen = kernel.attributes.get("specialization")
    return chosen.data if isinstance(chosen, StringAttr) else "single-loop"


def _required_instructions(
    kernel: KernelOp, facts: Facts, specialization: str, as_tf32: set[SSAValue]
) -> list[Requirement]:
    """Without which the kernel is not what was planned."""
    matmuls = [
        op for op in kernel.walk() if isinstance(op, Operator) and op.ON_TENSOR_CORES
    ]
    rows = [facts.resolve(op.result_type.dims[-2]) for op in matmuls]
    if not rows or any(isinstance(extent, int) and extent < 64 for extent in rows):
        return []
    required: list[Requirement] = []
    if all(takes_wgmma(op, as_tf32) for op in matmuls):
        required.append("wgmma")
    if any(isinstance(op, LoopOp) for op in kernel.walk()):
        # Only warps that do nothing but load use the bulk copies.
        required.append("cp_async" if specialization == "none" else "tma")
    return required
