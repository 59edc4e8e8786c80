"""The plans of the simple rule, where nothing that was searched works."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.lowering.compilation.choices import choices_for
from cleave.lowering.compilation.compilation import MOST_BUILDS
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.default_configurations import Choice
from cleave.lowering.compilation.footprint import require_fit
from cleave.lowering.compilation.pipeline import (
    NoProgramError,
    PreparedGraph,
    prepare,
    schedule,
)
from cleave.lowering.compilation.wanted import Wanted
from cleave.lowering.hardware import Hardware
from cleave.lowering.search.candidates import PlannedCandidate
from cleave.passes.cost.breakdown import launch_of, predicted_times
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.pipelined import PipelinedCost
from cleave.passes.scheduling.ranking import KernelSchedule
from cleave.passes.scheduling.selection import total_seconds
from cleave.passes.scheduling.structures import LoopStructure, kernels_of


def plans_by_rule(
    graph: GraphOp, hardware: Hardware, fast_math: bool
) -> Iterator[PlannedCandidate]:
    """
    The plans that `--effort rule` tries for a symbolic graph whose sizes are bound, in
    its order; none if the passes refuse the graph.
    """
    try:
        prepared = prepare(graph)
        choices = choices_for(prepared.graph, Wanted(), hardware)
    except (NoProgramError, PassFailedException):
        return
    plans = (_plan(prepared, each, hardware, fast_math) for each in choices)
    yield from islice((plan for plan in plans if plan is not None), MOST_BUILDS)


def _plan(
    prepared: PreparedGraph, choice: Choice, hardware: Hardware, fast_math: bool
) -> PlannedCandidate | None:
    """The plan of a configuration; None if it has no program that fits."""
    try:
        program = schedule(prepared, choice.configuration)
        source = program.source(fast_math=fast_math)
        require_fit(program.plan, hardware)
    except NoProgramError:
        return None
    (kernel,) = kernels_of(program.plan)
    step = _schedule(kernel, choice.configuration, hardware)
    return PlannedCandidate(
        program.plan,
        source,
        [f"by the rule: {step}"],
        [str(prepared.graph)],
        [prepared.graph],
        total_seconds([step.seconds], hardware) * 1e3,
        is_unfused=False,
        steps=[step],
    )


def _schedule(
    kernel: KernelOp, configuration: Configuration, hardware: Hardware
) -> KernelSchedule:
    """The schedule of a planned kernel of the form "pipelined", timed by the model."""
    times = predicted_times(kernel, hardware)
    blocks, reductions = configuration.tile, configuration.reduce
    return KernelSchedule(
        LoopStructure(blocks, reductions, has_tails=True),
        blocks,
        reductions,
        PipelinedCost.name,
        kernel_forms(kernel).warps,
        launch_of(kernel),
        configuration.swizzle,
        float(times.seconds.item()),
    )
