"""
The choice among plans: built side by side, checked, and only then measured.

What does not build, is not legal, or gives wrong numbers is rejected with a reason. On
a GPU the fastest by measurement is chosen, one kernel an operator group (`unfused`)
among them; without one the first that is right, in the order of the cost model, and of
those that call a vendor's library only if there is no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.built_plan import MODULE, BuiltPlan
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.device_check import DeviceCheck
from cleave.lowering.compilation.reduced_sizes import GraphSizes
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.compile_workers import CompileJob, CompileOutcome, compile_all
from cleave.lowering.hardware import Hardware
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.search.candidates import PlannedCandidate, Step
from cleave.lowering.search.gate_check import GraphGate
from cleave.lowering.search.plan_check import check_on_small_sizes

if TYPE_CHECKING:
    from cleave.lowering.runtime import CompiledGraph

JOB_SECONDS = 120.0


@dataclass
class Trial:
    """A plan on its way; `reason` says why it is out, if it is."""

    number: int
    candidate: PlannedCandidate
    built: BuiltPlan | None = None
    faults: Sequence[str] = ()
    check: NumericCheck | None = None
    runnable: CompiledGraph | None = None
    measured_ms: float | None = None
    reason: str | None = None

    @property
    def is_out(self) -> bool:
        return self.reason is not None


@dataclass
class Tuning:
    """All trials of a compilation, and how long its phases took."""

    trials: list[Trial]
    chosen: Trial
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])


def tune(
    graph: GraphOp,
    candidates: Sequence[PlannedCandidate],
    hardware: Hardware,
    folder: Path,
    *,
    on_device: bool,
    repeats: int,
    deadline: float | None,
    progress: Step,
) -> Tuning:
    """
    Build, check and, on a device, measure the candidates.

    Args:
        folder: where each is built, in a folder by its number.
        deadline: `time.monotonic()` after which no more are waited for.
    Raises:
        CompilationError: none of them is right; the message has the last reason.
    """
    trials = [Trial(number, each) for number, each in enumerate(candidates)]
    tuning = Tuning(trials, trials[0])
    start = time.monotonic()
    _build(trials, hardware, folder, deadline, progress)
    tuning.seconds["build"] = time.monotonic() - start
    start = time.monotonic()
    check = DeviceCheck(graph, GraphSizes.of(graph).sizes) if on_device else None
    gate = GraphGate(graph)
    order = trials
    if check is None:
        order = sorted(trials, key=lambda trial: trial.candidate.calls_library)
    for trial in order:
        if check is not None:
            _check_on_device(trial, check, progress)
        elif not trial.is_out:
            _check_in_numpy(graph, trial, progress)
            if not trial.is_out and gate.reason(trial.candidate.pieces) is None:
                break  # the others would only be slower, by all that is known
    tuning.seconds["check"] = time.monotonic() - start
    right = [trial for trial in order if trial.check and not trial.is_out]
    if not right:
        last = next((t.reason for t in reversed(trials) if t.reason), "nothing to try")
        raise CompilationError(
            f"@{graph.graph_name}: none of {len(trials)} plans works; the last: {last}"
        )
    if check is not None:
        start = time.monotonic()
        progress(f"measure: {len(right)} plans")
        _measure(right, check, repeats)
        tuning.seconds["measure"] = time.monotonic() - start
        right.sort(key=lambda trial: trial.measured_ms or float("inf"))
        progress(f"measure: the best takes {right[0].measured_ms or 0:.4f} ms")
    tuning.chosen = _winner(right, gate, tuning, progress)
    return tuning


def _winner(
    right: Sequence[Trial], gate: GraphGate, tuning: Tuning, progress: Step
) -> Trial:
    """The first that passes the numerical gate, which rejects those before it."""
    inexact: list[tuple[Trial, str]] = []
    for trial in right:
        progress(f"check: plan {trial.number} on adversarial inputs")
        reason = gate.reason(trial.candidate.pieces)
        if reason is None:
            for other, why in inexact:
                other.reason = why
            return trial
        inexact.append((trial, reason))
    # A kernel that is right on usual inputs is better than none.
    first, reason = inexact[0]
    tuning.notes.append(f"no plan passes the numerical gate; the chosen is {reason}")
    return first


def _build(
    trials: Sequence[Trial],
    hardware: Hardware,
    folder: Path,
    deadline: float | None,
    progress: Step,
) -> None:
    jobs: list[CompileJob] = []
    for trial in trials:
        place = folder / str(trial.number)
        place.mkdir(parents=True)
        module = place / MODULE
        module.write_text(trial.candidate.source, encoding="utf-8")
        jobs.append(CompileJob(str(trial.number), module, hardware.arch, place))
    finished = 0

    def done(outcome: CompileOutcome) -> None:
        nonlocal finished
        finished += 1
        progress(f"build: {finished} of {len(jobs)}, best by the model {best:.4f} ms")

    best = min(trial.candidate.predicted_ms for trial in trials)
    progress(f"build: 0 of {len(jobs)}")
    outcomes = compile_all(jobs, seconds=JOB_SECONDS, done=done, deadline=deadline)
    if deadline is not None and not any(outcome.built for outcome in outcomes):
        progress("build: the best plan by the model, for no time was left")
        outcomes[:1] = compile_all(jobs[:1], seconds=JOB_SECONDS)
    for trial, outcome in zip(trials, outcomes, strict=True):
        trial.built = outcome.built
        if outcome.built is None:
            trial.reason = outcome.reason or "not built"
        else:
            trial.faults = outcome.built.legality(hardware)
    if any(not trial.is_out and not trial.faults for trial in trials):
        # Kernels that spill or lack instructions count only if there are no others.
        for trial in trials:
            if trial.faults and not trial.is_out:
                trial.reason = trial.faults[0]


def _check_in_numpy(graph: GraphOp, trial: Trial, progress: Step) -> None:
    progress(f"check: plan {trial.number} in NumPy")
    try:
        trial.check = check_on_small_sizes(graph, trial.candidate.plan)
    except ExecutionError as error:
        trial.reason = f"cannot be executed on small sizes: {error}"
        return
    _require_right(trial)


def _check_on_device(trial: Trial, check: DeviceCheck, progress: Step) -> None:
    from cleave.lowering.runtime import load_compiled

    if trial.built is None or trial.is_out:
        return
    progress(f"check: plan {trial.number} on the GPU")
    try:
        trial.runnable = load_compiled(trial.built)
        trial.check = check.check(trial.runnable)
    except (RuntimeError, ValueError, OSError) as error:
        trial.reason = f"does not run: {str(error).splitlines()[0]}"
        return
    _require_right(trial)


def _require_right(trial: Trial) -> None:
    if trial.check is not None and trial.check.reasons:
        trial.reason = f"wrong numbers: {trial.check.reasons[0]}"


def _measure(trials: Sequence[Trial], check: DeviceCheck, repeats: int) -> None:
    """Median times of all of them, alternating in one run."""
    from cleave.lowering.timing import TimingError, time_alternating

    calls: dict[str, Callable[[], object]] = {}
    try:
        for trial in trials:
            if trial.runnable is not None:
                out = trial.runnable(*check.inputs)
                calls[str(trial.number)] = _call(trial.runnable, check, out)
        timings = time_alternating(calls, repeats=repeats)
    except (TimingError, RuntimeError) as error:
        raise CompilationError(str(error)) from error
    for trial in trials:
        if (timing := timings.get(str(trial.number))) is not None:
            trial.measured_ms = timing.median_ms


def _call(
    runnable: CompiledGraph, check: DeviceCheck, out: object
) -> Callable[[], object]:
    return lambda: runnable(*check.inputs, out=out)  # pyright: ignore[reportArgumentType]
