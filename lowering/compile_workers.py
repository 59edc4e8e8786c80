"""
Compile candidates in processes of their own, with a time and a memory limit each.

A compiler that hangs, eats memory or crashes takes down its process and nothing else:
the candidate is rejected with the reason, and the next one gets a new process. A
process serves many candidates, because it takes 1-2 s to import TileLang.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import cleave
from cleave.lowering.built_plan import BuiltPlan, BuiltPlanError, load_built

DEFAULT_SECONDS = 120.0
DEFAULT_MEMORY_BYTES = 8 * 2**30


@dataclass(frozen=True, slots=True)
class CompileJob:
    """A generated module to be built for `arch` ("sm_90a") into `folder`."""

    name: str
    module: Path
    arch: str
    folder: Path


@dataclass(frozen=True, slots=True)
class CompileOutcome:
    """A job's built plan, or one line that says why there is none."""

    job: CompileJob
    built: BuiltPlan | None
    reason: str | None
    seconds: float


def compile_all(
    jobs: Iterable[CompileJob],
    *,
    workers: int | None = None,
    seconds: float = DEFAULT_SECONDS,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    done: Callable[[CompileOutcome], object] | None = None,
    deadline: float | None = None,
) -> list[CompileOutcome]:
    """
    Build all jobs, `workers` at a time (one a core), with outcomes in the jobs' order.

    `seconds` is a job's wall-clock limit, `memory_bytes` what its process, and each
    that this starts, may allocate. `done` is called with each outcome as it comes, from
    the calling thread. Jobs that are not built at `deadline`, a `time.monotonic()`,
    come out without a build. However this ends, Ctrl-C included, no process is left
    behind.
    """
    listed = list(jobs)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(listed)):
        waiting.put(index)
    finished: queue.SimpleQueue[tuple[int, CompileOutcome]] = queue.SimpleQueue()

    def serve(process: _CompileProcess) -> None:
        with process, contextlib.suppress(queue.Empty):
            while True:
                index = waiting.get_nowait()
                finished.put((index, process.build(listed[index])))

    count = min(workers or os.cpu_count() or 1, len(listed))
    processes = [_CompileProcess(seconds, memory_bytes, deadline) for _ in range(count)]
    threads = [threading.Thread(target=serve, args=(p,)) for p in processes]
    outcomes: dict[int, CompileOutcome] = {}
    try:
        for thread in threads:
            thread.start()
        while len(outcomes) < len(listed):
            index, outcome = finished.get()
            outcomes[index] = outcome
            if done is not None:
                done(outcome)
    finally:
        for process in processes:
            process.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return [outcomes[index] for index in range(len(listed))]


class _CompileProcess:
    """
    A process that builds one job after another, started anew when it was lost.

    Belongs to one thread, which enters it; `stop` may be called from another.
    """

    def __init__(
        self, seconds: float, memory_bytes: int, deadline: float | None
    ) -> None:
        self._seconds = seconds
        self._deadline = deadline
        self._memory_bytes = memory_bytes
        # Guards what `stop` looks at: whether there is a process that may be killed.
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def stop(self) -> None:
        """Kill the process; jobs that are not finished come out as stopped."""
        with self._lock:
            self._stopped = True
            self._kill()

    def build(self, job: CompileJob) -> CompileOutcome:
        """Have a job built. Whatever goes wrong is the outcome's reason."""
        start = time.monotonic()
        built: BuiltPlan | None = None
        try:
            reason = self._ask(job)
            built = load_built(job.folder) if reason is None else None
        except (BuiltPlanError, OSError) as error:
            reason = str(error)
        return CompileOutcome(job, built, reason, time.monotonic() - start)

    def _ask(self, job: CompileJob) -> str | None:
        seconds = self._seconds
        if self._deadline is not None:
            seconds = min(seconds, self._deadline - time.monotonic())
            if seconds <= 0:
                return "no time was left to compile it"
        with self._lock:
            if self._stopped:
                return "stopped"
            process = self._process or self._start()
        request = {
            "module": str(job.module),
            "arch": job.arch,
            "folder": str(job.folder),
            "memory_bytes": self._memory_bytes,
        }
        assert process.stdin is not None
        # A process that is gone answers with the end of its output.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        answer = _read_line(process, seconds)
        if answer:
            return json.loads(answer)["error"]
        if self._stopped:
            return "stopped"
        reason = f"compilation took more than {seconds:.4g} s"
        if answer is not None:
            reason = f"the compiling process died ({self._how_it_died(process)})"
        self._end()
        return reason

    def _start(self) -> subprocess.Popen[str]:
        # Not a context manager: `_end` closes it, when the process is gone.
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        package_folder = str(Path(cleave.__file__).parents[1])
        paths = [package_folder, os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cleave.lowering.compile_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                # Compiling needs no GPU and must not take memory on one.
                "CUDA_VISIBLE_DEVICES": "",
                "OMP_NUM_THREADS": "1",
            },
            # A group of its own, which Ctrl-C does not reach and which is killed whole.
            start_new_session=True,
        )
        return self._process

    def _how_it_died(self, process: subprocess.Popen[str]) -> str:
        status = process.wait()
        how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
        assert self._errors is not None
        self._errors.seek(0)
        lines = self._errors.read().split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{how}; {last}" if last else how

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _end(self) -> None:
        """Kill the process and what it started, and forget it."""
        with self._lock:
            self._kill()
            process, self._process = self._process, None
        if process is not None and self._errors is not None:
            process.wait()
            for stream in (process.stdin, process.stdout, self._errors):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()


def _read_line(process: subprocess.Popen[str], seconds: float) -> str | None:
    """The next line of output; "" if the process closed it, None if time ran out."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(seconds):
            return None
    return process.stdout.readline()
