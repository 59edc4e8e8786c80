"""
The choice among plans: built side by side, checked, and only then measured.

What does not build, is not legal, or gives wrong numbers is rejected with a reason. On
a GPU the fastest by measurement is chosen, one kernel an operator group (`unfused`)
among them; without one the first that is right, in the order of the cost model, and of
those that call a vendor's library only if there is no other.

Where none is right, and TileLang refused what another way of planning might not, the
next plans in the order of the cost model are tried, and at last those of a simple rule.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.wording import counted, duration
from cleave.lowering.built_plan import MODULE, BuiltPlan
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compilation.device_worker import CandidateError, DeviceWorker
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.compile_workers import CompileJob, CompileOutcome, compile_all
from cleave.lowering.hardware import Hardware
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.phases import timed
from cleave.lowering.refused_kernels import RefusedKernels
from cleave.lowering.search.candidates import PlannedCandidate, Step
from cleave.lowering.search.gate_check import GraphGate
from cleave.lowering.search.plan_check import check_on_small_sizes
from cleave.lowering.search.unfused import NO_UNFUSED

JOB_SECONDS = 120.0
LATER_ROUNDS = 4
"""Of as many plans as there were at first, if none of those works."""
LATER_SECONDS = 15.0
"""After which no more of them are built, if a plan that calls a library works."""
BUILD_BYTES = 64 * 2**20
"""Of a disk, which nvcc's files of one kernel may take up to."""

NOT_JUDGED = "calls a library, which only a measurement can judge"


@dataclass
class Trial:
    """A plan on its way; `reason` says why it is out, if it is."""

    number: int
    candidate: PlannedCandidate
    built: BuiltPlan | None = None
    faults: Sequence[str] = ()
    check: NumericCheck | None = None
    measured_ms: float | None = None
    reason: str | None = None
    is_lost: bool = False
    """Whether it is out for what may not happen again."""

    @property
    def is_out(self) -> bool:
        return self.reason is not None

    @property
    def is_sound(self) -> bool:
        """Whether its kernels have no faults, as far as is known."""
        return not (self.is_out or self.faults)


@dataclass
class Tuning:
    """All trials of a compilation, and how long its phases took."""

    trials: list[Trial]
    chosen: Trial
    not_measured: str | None = None
    """Why they did not run; None if they did."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])
    inexact: Sequence[str] = ()
    """Why the numerical gate refuses each plan that it judged, the chosen first; empty
    if it passes the chosen."""


def tune(
    graph: GraphOp,
    candidates: Sequence[PlannedCandidate],
    hardware: Hardware,
    folder: Path,
    *,
    later: Iterable[PlannedCandidate] = (),
    unfused: Iterable[PlannedCandidate] = (),
    last: Iterable[PlannedCandidate] = (),
    device: DeviceWorker | None,
    repeats: int,
    deadline: float | None,
    progress: Step,
) -> Tuning:
    """
    Build, check and, on a device, measure the candidates.

    Args:
        folder: where each is built, in a folder by its number.
        later: the next best, tried round by round until a plan that calls no library
            is right and has no faults, `LATER_ROUNDS` at most, or `LATER_SECONDS` if
            one is right; and if none passes the numerical gate, for as long again.
        unfused: tried one by one on a device if `candidates` has unfused plans, of
            which none is right, or no plan passes the gate.
        last: tried one by one if nothing is right, or passes the gate, also after the
            deadline.
        device: where they run; if None, or if PyTorch has no GPU, they do not.
        deadline: `time.monotonic()` after which no more are waited for.
    Raises:
        CompilationError: none of them is right; the message has the last reason.
    """
    first = [Trial(number, each) for number, each in enumerate(candidates)]
    tuning = Tuning(first, first[0])
    trying = _Trying(graph, hardware, folder, device, deadline, progress, tuning)
    right = trying.right_of(first)
    following = iter(later)
    if right:
        trying.end_by(time.monotonic() + LATER_SECONDS)
    for _ in range(LATER_ROUNDS):
        if any(t.is_sound and not t.candidate.calls_library for t in right):
            break
        if trying.is_late:
            break
        if not (more := trying.added(islice(following, len(candidates)))):
            break
        right += trying.right_of(more, is_needed=not right)
    right = trying.without_faults(right)
    unfused = iter(unfused)
    has_unfused = any(each.is_unfused for each in candidates)
    is_in_time = deadline is None or time.monotonic() < deadline
    if is_in_time and has_unfused:
        right += trying.unfused_of(right, unfused)
    right = trying.measured(right, repeats)
    last = iter(last)
    while not right and (plan := next(last, None)) is not None:
        right = trying.measured(trying.right_of(trying.added([plan])), repeats)
    if right and not any(map(trying.is_exact, right)):
        end = time.monotonic() + LATER_SECONDS
        right += trying.exact_of(following, end) or trying.exact_of(last)
        if trying.device is not None and has_unfused:
            right += trying.exact_of(unfused, end)
        right = trying.measured(right, repeats)
    if not right:
        reasons = [trial.reason for trial in tuning.trials if trial.reason]
        raise CompilationError(
            f"@{graph.graph_name}: none of {counted(len(tuning.trials), 'plan')} "
            f"works; the last: {reasons[-1] if reasons else 'nothing to try'}"
        )
    if (best_ms := right[0].measured_ms) is not None:
        progress(f"measure: the best takes {duration(best_ms)}")
    tuning.chosen = _winner(right, trying.gate, tuning)
    if (loss := trying.gate.loss()) is not None:
        tuning.notes.append(f"as it is written, the graph is inexact for {loss}")
    if trying.device is None:
        _pass_over_libraries(tuning)
    return tuning


@dataclass
class _Trying:
    """Building, checking and measuring of plans, one round of them after another."""

    graph: GraphOp
    hardware: Hardware
    folder: Path
    device: DeviceWorker | None
    deadline: float | None
    progress: Step
    tuning: Tuning
    is_prepared: bool = False
    """Whether the device has what it checks results with."""
    refused: RefusedKernels = field(default_factory=RefusedKernels)

    def __post_init__(self) -> None:
        self.gate = GraphGate(self.graph)

    def added(self, candidates: Iterable[PlannedCandidate]) -> list[Trial]:
        """New trials."""
        begin = len(self.tuning.trials)
        trials = [Trial(number, each) for number, each in enumerate(candidates, begin)]
        self.tuning.trials += trials
        return trials

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def end_by(self, deadline: float) -> None:
        """Have no deadline later than this."""
        self.deadline = min(deadline, self.deadline or deadline)

    def right_of(
        self, trials: Sequence[Trial], *, is_needed: bool = True
    ) -> list[Trial]:
        """
        Those that build and are right; without a device, up to the first to take. If
        they are needed, one is built whatever the deadline.
        """
        with timed(self.tuning.seconds, "build"):
            _build(
                trials,
                self.hardware,
                self.folder,
                self.deadline,
                self.refused,
                self.progress,
                is_needed=is_needed,
            )
        with timed(self.tuning.seconds, "check"):
            self._prepare()
            self.without_faults(self.tuning.trials)
            return self._checked(trials)

    def unfused_of(
        self, right: Sequence[Trial], unfused: Iterable[PlannedCandidate]
    ) -> list[Trial]:
        """The first unfused plan that is right, if those that are right have none."""
        if self.device is None or any(each.candidate.is_unfused for each in right):
            return []
        if not (found := self.first_right(unfused)):
            self.tuning.notes.append(f"{NO_UNFUSED}: none of them works")
        return found

    def first_right(self, plans: Iterable[PlannedCandidate]) -> list[Trial]:
        """The first plan that is right; those behind it are not built."""
        for plan in plans:
            if found := self.right_of(self.added([plan])):
                return found
        return []

    def without_faults(self, trials: Sequence[Trial]) -> list[Trial]:
        """
        The plans that are not out, and those without faults if there are some: kernels
        that spill or lack instructions count only if there are no others. Those of a
        library are such where they can be measured.
        """
        sound = (trial for trial in trials if trial.is_sound)
        if any(self.device or not trial.candidate.calls_library for trial in sound):
            for trial in trials:
                if trial.faults and not trial.is_out:
                    trial.reason = trial.faults[0]
        return [trial for trial in trials if not trial.is_out]

    def is_exact(self, trial: Trial) -> bool:
        """Whether a plan passes the numerical gate."""
        self.progress(f"check: plan {trial.number} on adversarial inputs")
        return self.gate.reason(trial.candidate.pieces) is None

    def exact_of(
        self, plans: Iterable[PlannedCandidate], end: float = math.inf
    ) -> list[Trial]:
        """
        The first of the plans that is right and passes the numerical gate, which judges
        graphs, so that it is asked before anything is built; until `end`, a
        `time.monotonic()`.
        """
        self.progress("check: other graphs on adversarial inputs")
        timely = takewhile(lambda _: time.monotonic() <= end, plans)
        return self.first_right(
            plan for plan in timely if self.gate.reason(plan.pieces) is None
        )

    def _prepare(self) -> None:
        if self.device is None or self.is_prepared:
            return
        self.progress("check: the reference on the GPU")
        try:
            self.device.prepare()
            self.is_prepared = True
        except NoDeviceError as error:
            self.device, self.tuning.not_measured = None, str(error)

    def _checked(self, trials: Sequence[Trial]) -> list[Trial]:
        order = trials
        if self.device is None:
            order = sorted(trials, key=lambda trial: trial.candidate.calls_library)
        for trial in order:
            if self.device is not None:
                _check_on_device(trial, self.device, self.progress)
            elif not trial.is_out:
                _check_in_numpy(self.graph, trial, self.progress)
                if (
                    not trial.is_out
                    and self.gate.reason(trial.candidate.pieces) is None
                ):
                    break  # the others would only be slower, by all that is known
        return [trial for trial in order if trial.check and not trial.is_out]

    def measured(self, right: Sequence[Trial], repeats: int) -> list[Trial]:
        """Those that run, the fastest first; without a device, all as they are."""
        if self.device is None:
            return sorted(right, key=lambda trial: trial.candidate.calls_library)
        self.progress(f"measure: {counted(len(right), 'plan')}")
        with timed(self.tuning.seconds, "measure"):
            return _measured(right, self.device, repeats)


def _pass_over_libraries(tuning: Tuning) -> None:
    """Say why plans were not tried that the model takes for faster, or as fast."""
    if not tuning.chosen.candidate.calls_library:
        for trial in tuning.trials:
            if trial.candidate.calls_library and not trial.is_out:
                trial.reason = NOT_JUDGED


def _winner(right: Sequence[Trial], gate: GraphGate, tuning: Tuning) -> Trial:
    """The first that passes the numerical gate, which rejects those before it."""
    inexact: list[tuple[Trial, str]] = []
    for trial in right:
        reason = gate.reason(trial.candidate.pieces)
        if reason is None:
            for other, why in inexact:
                other.reason = why
            return trial
        inexact.append((trial, reason))
    # A kernel that is right on usual inputs is better than none.
    tuning.inexact = [why for _, why in inexact]
    for other, why in inexact[1:]:
        other.reason = why
    return inexact[0][0]


def _build(
    trials: Sequence[Trial],
    hardware: Hardware,
    folder: Path,
    deadline: float | None,
    refused: RefusedKernels,
    progress: Step,
    *,
    is_needed: bool,
) -> None:
    jobs: list[CompileJob] = []
    best_ms = min(trial.candidate.predicted_ms for trial in trials)
    for trial in trials:
        place = folder / str(trial.number)
        place.mkdir(parents=True)
        module = place / MODULE
        module.write_text(trial.candidate.source, encoding="utf-8")
        jobs.append(
            CompileJob(
                str(trial.number),
                module,
                hardware.arch,
                place,
                kernels=max(1, len(trial.candidate.schedules)),
                is_best=trial.candidate.predicted_ms == best_ms,
            )
        )
    finished = 0

    def done(outcome: CompileOutcome) -> None:
        nonlocal finished
        finished += 1
        progress(f"build: {finished} of {len(jobs)}, best by the model {best}")

    best = duration(best_ms)
    progress(f"build: 0 of {len(jobs)}")
    outcomes = compile_all(
        jobs, seconds=JOB_SECONDS, done=done, deadline=deadline, refused=refused
    )
    if not all(outcome.built for outcome in outcomes):
        _require_space(folder)
    is_late = deadline is not None and not any(each.built for each in outcomes)
    if is_late and is_needed:
        progress("build: the best plan by the model, for no time was left")
        outcomes[:1] = compile_all(jobs[:1], seconds=JOB_SECONDS)
    for trial, outcome in zip(trials, outcomes, strict=True):
        trial.built = outcome.built
        if outcome.built is None:
            trial.reason = outcome.reason or "not built"
            trial.is_lost = outcome.is_lost
        else:
            trial.faults = outcome.built.legality(hardware)


def _require_space(folder: Path) -> None:
    """Raises OSError if builds failed for want of space, not for what is built."""
    if shutil.disk_usage(folder).free < BUILD_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.parent))


def _check_in_numpy(graph: GraphOp, trial: Trial, progress: Step) -> None:
    progress(f"check: plan {trial.number} in NumPy")
    try:
        trial.check = check_on_small_sizes(graph, trial.candidate.plan)
    except ExecutionError as error:
        trial.reason = f"cannot be executed on small sizes: {error}"
        return
    _require_right(trial)


def _check_on_device(trial: Trial, device: DeviceWorker, progress: Step) -> None:
    if trial.built is None or trial.is_out:
        return
    progress(f"check: plan {trial.number} on the GPU")
    try:
        trial.check = device.check(trial.built.folder)
    except CandidateError as error:
        trial.reason, trial.is_lost = str(error), error.is_lost
        return
    _require_right(trial)


def _require_right(trial: Trial) -> None:
    if trial.check is not None and trial.check.reasons:
        trial.reason = f"wrong numbers: {trial.check.reasons[0]}"


def _measured(
    trials: Sequence[Trial], device: DeviceWorker, repeats: int
) -> list[Trial]:
    """Those that have a time, all alternating in one run, with the fastest first."""
    folders = {str(t.number): t.built.folder for t in trials if t.built is not None}
    found = device.measure(folders, repeats)
    for trial in trials:
        trial.measured_ms = found.times.get(str(trial.number))
        if (error := found.rejected.get(str(trial.number))) is not None:
            trial.reason, trial.is_lost = str(error), error.is_lost
    timed = [(t.measured_ms, t) for t in trials if t.measured_ms is not None]
    return [trial for _, trial in sorted(timed, key=lambda pair: pair[0])]
