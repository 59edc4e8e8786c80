"""The cost of the form "pipelined", whose loops are `T.Pipelined`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import KernelForms
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.form import Launch, Limit, Rule, Specialization, Times
from cleave.passes.cost.legality import (
    launch_limits,
    layout_rules,
    prelude_rules,
    register_parts,
    shared_parts,
    tensor_core_rules,
)
from cleave.passes.cost.pipelined_resources import Launches, resources
from cleave.passes.cost.pipelined_time import kernel_times
from cleave.passes.cost.work import WARPGROUP

STAGES = (2, 3, 4, 5, 6)


class PipelinedCost:
    """The cost of the form that fits every kernel; see `FormCost`."""

    name = "pipelined"

    def may_fit(self, forms: KernelForms, hardware: Hardware) -> bool:
        return True

    def launches(self, forms: KernelForms, hardware: Hardware) -> Sequence[Launch]:
        return [
            Launch(WARPGROUP * warpgroups, count, specialization)
            for specialization in _specializations(forms, hardware)
            for warpgroups in _warpgroups(forms, specialization)
            for count in _stages(forms, specialization)
        ]

    def limits(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Mapping[str, Limit | Rule]:
        chosen = Launches.of(launches)
        used = resources(at, launches, hardware)
        return {
            **tensor_core_rules(at, chosen.warpgroups, used.launch_registers, hardware),
            **layout_rules(at, chosen.threads),
            **prelude_rules(
                at, chosen.is_single_loop & used.has_producers, used.threads
            ),
            **launch_limits(at, chosen.stages, used.threads, hardware),
            "registers": Limit(
                used.registers,
                used.register_limit,
                "tiles take {used} registers of each thread, "
                "which has {limit} for them",
                register_parts(at),
            ),
            "smem": Limit(
                used.smem_bytes,
                np.full((1, 1), float(hardware.smem_bytes_per_block)),
                "tiles take {used} bytes of SMEM, of which a threadblock has {limit}",
                shared_parts(at),
            ),
        }

    def times(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Times:
        used = resources(at, launches, hardware)
        return kernel_times(at, launches, used, hardware)


def _specializations(
    forms: KernelForms, hardware: Hardware
) -> tuple[Specialization, ...]:
    """
    TileLang's planner for one loop moves the initial values of nested loops to the
    wrong place, and of several loops it pipelines the first only.
    """
    if "tma" not in hardware.instructions or not forms.loops:
        return ("none",)
    if len(forms.loops) > 1:
        return ("role-based", "none")
    return ("single-loop", "role-based", "none")


def _stages(forms: KernelForms, specialization: Specialization) -> tuple[int, ...]:
    """
    One where nothing is loaded ahead. Without specialized warps TileLang cannot say how
    many loads are on their way at the end of a loop whose iterations vary.
    """
    pipelined = [level for level in forms.loops if level.is_pipelined]
    varies = any(level.varies for level in pipelined)
    if not pipelined or (varies and specialization == "none"):
        return (1,)
    return STAGES


def _warpgroups(forms: KernelForms, specialization: Specialization) -> tuple[int, ...]:
    """
    Three that compute only with the planner for one loop: the role-based one gives them
    72 registers. Columns are divided by more than one, or else there is nothing to it.
    """
    if not forms.products:
        return (1, 2)
    most = 3 if specialization == "single-loop" else 2
    return tuple(range(2 if forms.warps == "columns" else 1, most + 1))
