"""
Compile candidates in processes of their own, with a time and a memory limit each.

A compiler that hangs, eats memory or crashes takes down its process and nothing else:
the candidate is rejected with the reason, and the next one gets a new process. A
process serves many candidates, because it takes 1-2 s to import TileLang.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cleave.lowering.built_plan import BuiltPlan, BuiltPlanError, load_built
from cleave.lowering.refused_kernels import RefusedKernels
from cleave.lowering.worker import Worker, WorkerLostError

DEFAULT_SECONDS = 120.0
DEFAULT_MEMORY_BYTES = 8 * 2**30

LEAST_PATIENCE = 20.0
"""Seconds of a core that a kernel may take whatever the others take. Most take 3-8 s,
17 s where all of a tile is loaded element by element, the first of a process 3 s more;
what is unrolled over thousands of elements takes minutes in nvcc, and is never fast."""
STRAGGLING = 3.0
"""How many times as long as the slowest that is built a kernel may take."""
BEST_PATIENCE = 2.0
"""How much longer that is for the best by the model."""


@dataclass(frozen=True, slots=True)
class CompileJob:
    """A generated module to be built for `arch` ("sm_90a") into `folder`."""

    name: str
    module: Path
    arch: str
    folder: Path
    kernels: int = 1
    """How many it has, each of which takes its time."""
    is_best: bool = False
    """Whether the model takes it for the fastest."""


@dataclass(frozen=True, slots=True)
class CompileOutcome:
    """
    A job's built plan, or one line that says why there is none. `is_lost` says that the
    process died, or came to an end of its time or memory, which may not happen again.
    """

    job: CompileJob
    built: BuiltPlan | None
    reason: str | None
    seconds: float
    is_lost: bool = False


def compile_all(
    jobs: Iterable[CompileJob],
    *,
    workers: int | None = None,
    seconds: float = DEFAULT_SECONDS,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    done: Callable[[CompileOutcome], object] | None = None,
    deadline: float | None = None,
    refused: RefusedKernels | None = None,
) -> list[CompileOutcome]:
    """
    Build all jobs, `workers` at a time (one a core), with outcomes in the jobs' order.

    `seconds` is a job's wall-clock limit, less once others are built (see
    `Patience`); `memory_bytes` what its process, and each that this starts, may
    allocate. `done` is called with each outcome as it comes, from the calling thread.
    Jobs that are not built at `deadline`, a `time.monotonic()`, come out without a
    build, and so do those with a kernel that is in `refused`, to which those that
    TileLang refuses are added. However this ends, Ctrl-C included, no process is left
    behind.
    """
    listed = list(jobs)
    known = RefusedKernels() if refused is None else refused
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(listed)):
        waiting.put(index)
    finished: queue.SimpleQueue[tuple[int, CompileOutcome] | Exception]
    finished = queue.SimpleQueue()

    def serve(process: _CompileProcess) -> None:
        try:
            with process.worker, contextlib.suppress(queue.Empty):
                while True:
                    index = waiting.get_nowait()
                    finished.put((index, outcome_of(listed[index], process)))
        except Exception as error:  # a defect, which the caller's thread raises
            finished.put(error)

    def outcome_of(job: CompileJob, process: _CompileProcess) -> CompileOutcome:
        if (reason := known.reason(job.module)) is not None:
            return CompileOutcome(job, None, reason, 0.0)
        outcome = process.build(job)
        known.note(job.module, outcome.reason or "")
        return outcome

    # What a process that is killed leaves there goes as well.
    scratch = tempfile.TemporaryDirectory(prefix="cleave-", ignore_cleanup_errors=True)
    patience = Patience()
    count = min(workers or os.cpu_count() or 1, len(listed))
    processes = [
        _CompileProcess(seconds, memory_bytes, deadline, scratch.name, patience)
        for _ in range(count)
    ]
    threads = [threading.Thread(target=serve, args=(p,)) for p in processes]
    outcomes: dict[int, CompileOutcome] = {}
    try:
        for thread in threads:
            thread.start()
        while len(outcomes) < len(listed):
            found = finished.get()
            if isinstance(found, Exception):
                raise found
            index, outcome = found
            outcomes[index] = outcome
            if done is not None:
                done(outcome)
    finally:
        for process in processes:
            process.worker.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        scratch.cleanup()
    return [outcomes[index] for index in range(len(listed))]


class Patience:
    """
    How long jobs may take once others are built, by what those took; in seconds of a
    core, which are the same on a machine that is busy.
    """

    def __init__(self) -> None:
        self.slowest = 0.0
        """Seconds for each kernel of the slowest that is built."""

    def built(self, job: CompileJob, seconds: float) -> None:
        self.slowest = max(self.slowest, seconds / job.kernels)

    def seconds(self, job: CompileJob) -> float:
        """What a job may take by now; without an end as long as none is built."""
        if not self.slowest:
            return math.inf
        kernel = max(LEAST_PATIENCE, STRAGGLING * self.slowest)
        return job.kernels * kernel * (BEST_PATIENCE if job.is_best else 1.0)


class _CompileProcess:
    """A process that builds one job after another."""

    def __init__(
        self,
        seconds: float,
        memory_bytes: int,
        deadline: float | None,
        scratch: str,
        patience: Patience,
    ) -> None:
        self._patience = patience
        self._seconds = seconds
        self._deadline = deadline
        self._memory_bytes = memory_bytes
        self.worker = Worker(
            "cleave.lowering.compile_process",
            {
                # Compiling needs no GPU and must not take memory on one.
                "CUDA_VISIBLE_DEVICES": "",
                "OMP_NUM_THREADS": "1",
                "TMPDIR": scratch,
            },
        )

    def build(self, job: CompileJob) -> CompileOutcome:
        """Have a job built. Whatever goes wrong is the outcome's reason."""
        start, before = time.monotonic(), self.worker.core_seconds()
        built: BuiltPlan | None = None
        is_lost = False
        try:
            reason, is_lost = self._ask(job)
            built = load_built(job.folder) if reason is None else None
        except (BuiltPlanError, OSError) as error:
            reason, is_lost = str(error), True
        if built is not None:
            self._patience.built(job, self.worker.core_seconds() - before)
        return CompileOutcome(job, built, reason, time.monotonic() - start, is_lost)

    def _ask(self, job: CompileJob) -> tuple[str | None, bool]:
        """Why a job is not built, or None, and whether it is lost."""
        seconds = self._seconds
        if self._deadline is not None:
            seconds = min(seconds, self._deadline - time.monotonic())
            if seconds <= 0:
                return "no time was left to compile it", False
        request = {
            "module": str(job.module),
            "arch": job.arch,
            "folder": str(job.folder),
            "memory_bytes": self._memory_bytes,
        }
        try:
            answer = self.worker.ask(
                request, seconds, "compilation", lambda: self._patience.seconds(job)
            )
        except WorkerLostError as error:
            # An end that the caller has set comes again.
            is_over = self._deadline is not None and time.monotonic() >= self._deadline
            return str(error), not is_over and not error.slow
        return answer["error"], answer["is_lost"]
