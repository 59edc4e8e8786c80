"""What became of the configurations of a graph, and the report of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.building import Build
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.default_configurations import Choice
from cleave.lowering.compilation.pipeline import PreparedGraph, TileProgram, pipeline
from cleave.lowering.compilation.place import Place
from cleave.lowering.compilation.report import RuleReport
from cleave.lowering.search.effort import RULE
from cleave.lowering.search.floor import floor_ms
from cleave.lowering.search.report import TrialReport
from cleave.passes.cost.breakdown import KernelCost, plan_costs
from cleave.passes.scheduling.selection import total_seconds


@dataclass(frozen=True)
class Candidate:
    """A configuration that was built and computes the right numbers."""

    choice: Choice
    program: TileProgram
    source: str
    build: Build
    check: NumericCheck


@dataclass(frozen=True)
class Rejection:
    """A configuration that is not taken, and its check if there was one."""

    configuration: Configuration
    reason: str
    check: NumericCheck | None
    is_lost: bool = False
    """Whether it may work the next time."""


def report_of(
    prepared: PreparedGraph,
    place: Place,
    best: Candidate,
    rejected: Sequence[Rejection],
    measured_ms: float | None,
    not_measured: str | None,
    seconds: Mapping[str, float],
) -> RuleReport:
    """The report of a graph that was compiled, for JSON and for people."""
    graph = prepared.symbolic
    binding = graph.facts.binding
    sizes = {name: binding.get(name) for name in graph.symbol_names}
    plan = best.program.plan
    kernels = [op for op in plan.body.block.ops if isinstance(op, KernelOp)]
    configuration = best.choice.configuration
    name = graph.graph_name
    costs: list[KernelCost] = []
    predicted_ms = launch_ms = None
    if all(isinstance(size, int) for size in sizes.values()):
        costs = plan_costs(plan, place.hardware)
        seconds_of_each = [cost.seconds for cost in costs]
        total = total_seconds(seconds_of_each, place.hardware)
        predicted_ms = total * 1e3
        launch_ms = (total - sum(seconds_of_each)) * 1e3
    trials = [
        replace(
            _trial(number, name, each.configuration, each.check, None, each.reason),
            is_lost=each.is_lost,
        )
        for number, each in enumerate(rejected)
    ]
    taken = _trial(len(trials), name, configuration, best.check, measured_ms, None)
    trials.append(replace(taken, predicted_ms=predicted_ms))
    return RuleReport(
        graph=name,
        sizes={n: s if isinstance(s, int) else None for n, s in sizes.items()},
        effort=RULE,
        hardware={"name": place.hardware.name, "arch": place.hardware.arch},
        device=place.device.name if place.device else None,
        chosen=[str(configuration)],
        chosen_graphs=[str(prepared.graph)],
        chosen_number=len(rejected),
        kernels=best.build.kernels,
        faults=best.build.faults,
        checked=best.check.method,
        checked_sizes=best.check.sizes,
        max_error=best.check.max_error,
        allowed_error=best.check.max_allowed,
        predicted_ms=predicted_ms,
        launch_ms=launch_ms,
        costs=[cost.literal() for cost in costs],
        measured_ms=measured_ms,
        not_measured=not_measured,
        unfused_ms=None,
        floor_ms=floor_ms(graph, place.hardware),
        candidates=1,
        evaluated=len(trials),
        pruned={},
        trials=trials,
        notes=[],
        versions=place.versions,
        seconds={name: round(s, 3) for name, s in seconds.items()},
        configuration=configuration,
        threads=max(k.threads.value.data for k in kernels if k.threads),
        form=", ".join(dict.fromkeys(k.form.data for k in kernels if k.form)),
        pipeline=pipeline(configuration),
        why=best.choice.why,
        check=best.check,
    )


def _trial(
    number: int,
    graph: str,
    configuration: Configuration,
    check: NumericCheck | None,
    measured_ms: float | None,
    reason: str | None,
) -> TrialReport:
    error = None if check is None else check.max_error
    text = str(configuration)
    return TrialReport(number, graph, [text], None, measured_ms, error, reason, False)
