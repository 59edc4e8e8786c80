"""The search itself: from a symbolic graph to a record for the cache, and a build."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.wording import counted
from cleave.lowering.compilation.device_worker import DeviceWorker
from cleave.lowering.compilation.place import Place
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.report_page.graph_picture import pictures
from cleave.lowering.search.candidates import (
    Candidates,
    NoScheduleError,
    Step,
    find_candidates,
)
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.lowering.search.floor import floor_ms
from cleave.lowering.search.folder import copy_files
from cleave.lowering.search.report import SearchReport, TrialReport
from cleave.lowering.search.rule_plans import plans_by_rule
from cleave.lowering.search.stages import chosen_stages, printed
from cleave.lowering.search.tuning import Trial, Tuning, tune
from cleave.passes.cost.breakdown import plan_costs
from cleave.passes.symbolize import SymbolizePass


def searched(
    graph: GraphOp,
    folder: Path,
    place: Place,
    *,
    effort: str,
    ablation: Ablation,
    fast_math: bool,
    deadline: float | None,
    progress: Step,
) -> dict[str, Any]:
    """
    The best plan for a symbolic graph whose sizes are bound. Its build is in `folder`;
    what is returned is the `report`, the `source`, the `stages` and the `pictures`, as
    JSON takes them.

    `deadline` is a `time.monotonic()`; see `find_candidates` and `tune`. Raises
    CompilationError.
    """
    with ExitStack() as stack:
        scratch = stack.enter_context(TemporaryDirectory(prefix="cleave-"))
        device: DeviceWorker | None = None
        if place.device is not None:
            device = stack.enter_context(DeviceWorker(graph, place.device))
        start = time.monotonic()
        hardware, refusal = place.hardware, None
        # Of a search with a part left out, what it finds itself is of interest.
        is_whole = ablation == Ablation()
        by_rule = plans_by_rule(graph, hardware, fast_math) if is_whole else iter(())
        try:
            found = find_candidates(
                graph,
                EFFORTS[effort],
                hardware,
                ablation,
                fast_math,
                progress,
                deadline=deadline,
            )
        except NoScheduleError as error:
            refusal = error
            found = Candidates([*islice(by_rule, 1)], notes=[str(error)])
            if not found.plans:
                raise
        seconds = {"search": time.monotonic() - start}
        try:
            tuning = tune(
                graph,
                found.plans,
                hardware,
                Path(scratch),
                later=found.later,
                unfused=found.unfused,
                last=by_rule,
                device=device,
                repeats=EFFORTS[effort].repeats,
                deadline=deadline,
                progress=progress,
            )
        except CompilationError as error:
            raise refusal or error from error
        built = tuning.chosen.built
        assert built is not None  # what is right was built
        copy_files(built.folder, folder)
    tuning.seconds = {**seconds, **tuning.seconds}
    candidate = tuning.chosen.candidate
    stages = {SymbolizePass.name: printed([graph]), **found.stages}
    return {
        "report": _report(graph, effort, place, found, tuning).json(),
        "source": candidate.source,
        "stages": {**stages, **chosen_stages(candidate)},
        "pictures": pictures(graph, candidate.pieces),
    }


def _report(
    graph: GraphOp, effort: str, place: Place, found: Candidates, tuning: Tuning
) -> SearchReport:
    chosen = tuning.chosen
    cannot_run = place.cannot_run or tuning.not_measured
    device = place.device.name if place.device and cannot_run is None else None
    check = chosen.check
    assert check is not None
    assert chosen.built is not None
    binding = graph.facts.binding
    kernels = [r for kernel in chosen.built.kernels for r in kernel.reports]
    notes = [*found.notes, *tuning.notes]
    if tuning.inexact:
        notes.append(inexact_note(tuning.inexact, found.graphs))
    predicted_ms = chosen.candidate.predicted_ms
    costs = plan_costs(chosen.candidate.plan, place.hardware)
    unfused = [
        trial.measured_ms
        for trial in tuning.trials
        if trial.candidate.is_unfused
        and trial.measured_ms is not None
        and not trial.is_out
    ]
    trials = [_trial_report(trial) for trial in tuning.trials]
    next_number = len(trials)
    trials += [
        TrialReport(next_number + n, name, [schedule], None, None, None, reason, False)
        for n, (name, schedule, reason) in enumerate(found.refused)
    ]
    return SearchReport(
        graph=graph.graph_name,
        sizes={n: v for n, v in binding.items() if isinstance(v, int)},
        effort=effort,
        hardware={"name": place.hardware.name, "arch": place.hardware.arch},
        device=device,
        chosen=chosen.candidate.schedules,
        chosen_graphs=chosen.candidate.graphs,
        chosen_number=chosen.number,
        kernels=[kernel.literal() for kernel in kernels],
        faults=chosen.faults,
        checked=check.method,
        checked_sizes=check.sizes,
        max_error=check.max_error,
        allowed_error=check.max_allowed,
        predicted_ms=predicted_ms,
        launch_ms=predicted_ms - sum(cost.seconds for cost in costs) * 1e3,
        costs=[cost.literal() for cost in costs],
        measured_ms=chosen.measured_ms,
        not_measured=cannot_run,
        unfused_ms=min(unfused, default=None),
        floor_ms=floor_ms(
            graph, place.hardware, [each.candidate.pieces for each in tuning.trials]
        ),
        candidates=found.graphs,
        evaluated=found.pruned.evaluated,
        pruned={**found.pruned.by_rule, **found.pruned.refused},
        trials=trials,
        notes=notes,
        versions=place.versions,
        seconds={name: round(s, 3) for name, s in tuning.seconds.items()},
    )


def inexact_note(reasons: Sequence[str], candidates: int) -> str:
    """
    What the report says where the numerical gate refuses all plans that it judged, the
    chosen for the first of these reasons. Not all candidates were judged.
    """
    return (
        f"the numerical gate passes none of {counted(len(reasons), 'plan')} that it "
        f"judged, of {counted(candidates, 'candidate')}; the chosen is {reasons[0]}"
    )


def _trial_report(trial: Trial) -> TrialReport:
    return TrialReport(
        trial.number,
        trial.candidate.plan.plan_name,
        trial.candidate.schedules,
        trial.candidate.predicted_ms,
        trial.measured_ms,
        trial.check.max_error if trial.check else None,
        trial.reason,
        trial.candidate.is_unfused,
        trial.candidate.calls_library,
        trial.is_lost,
    )
