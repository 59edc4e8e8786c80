"""
Work in processes of their own, each with a time limit and started anew when it is lost.

What hangs, crashes or eats memory takes down its process and nothing else. A process
answers one request after another, since it may take seconds to import what it needs;
`cleave.lowering.serving` is its side. Requests and answers are JSON objects, one a
line. A line with a note says what is being done, and that time starts anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self

import cleave

NOTE = "note"
"""The only entry of a line that is no answer."""
MOST_BYTES_AT_ONCE = 1 << 16
LOOK_SECONDS = 0.5
"""How often it is looked at how long a process has had a core."""


class WorkerLostError(Exception):
    """
    A request without an answer; the message says why, in a few words.

    `note` is the last that the process gave while it worked on the request. What is
    `slow` has had a core for too long, as it would again.
    """

    def __init__(
        self, reason: str, note: str | None = None, *, slow: bool = False
    ) -> None:
        super().__init__(reason)
        self.note = note
        self.slow = slow


class Worker:
    """
    A process that runs a module and answers requests.

    Belongs to one thread, which enters it; `stop` may be called from another. However
    that thread leaves, Ctrl-C included, no process is left behind.
    """

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        """`environment` is what the process has besides the one of this process."""
        self._module = module
        self._environment = environment
        # Guards what `stop` looks at: whether there is a process that may be killed.
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[str] | None = None
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def runs(self) -> bool:
        """Whether there is a process, as far as this one knows."""
        return self._process is not None

    def start(self) -> None:
        """Have a process, which imports what it needs while nothing is asked yet."""
        with self._lock:
            if self._process is None and not self._stopped:
                self._start()

    def stop(self) -> None:
        """Kill the process; no request is answered any more."""
        with self._lock:
            self._stopped = True
            self._kill()

    def end(self) -> None:
        """Kill the process and what it started; the next request gets another one."""
        with self._lock:
            self._kill()
            process, self._process = self._process, None
        if process is not None and self._errors is not None:
            process.wait()
            for stream in (process.stdin, process.stdout, self._errors):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()

    def ask(
        self,
        request: Mapping[str, Any],
        seconds: float,
        what: str,
        patience: Callable[[], float] | None = None,
    ) -> dict[str, Any]:
        """
        The answer to a request, which takes no longer than this, or between notes.
        `what` is what messages call it. `patience` gives the seconds of a core that the
        process may take for it, which may become fewer while it works.

        Raises WorkerLostError, and then there is no process any more.
        """
        self.start()
        process = self._process
        if self._stopped or process is None:
            raise WorkerLostError("stopped")
        assert process.stdin is not None
        # A process that is gone answers with the end of its output.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        note: str | None = None
        before = 0.0 if patience is None else self.core_seconds()

        def is_over() -> bool:
            return patience is not None and self.core_seconds() - before > patience()

        while line := self._line(process, time.monotonic() + seconds, is_over):
            answer: dict[str, Any] = json.loads(line)
            if NOTE not in answer:
                return answer
            note = answer[NOTE]
        if self._stopped:
            raise WorkerLostError("stopped", note)
        slow = False
        reason = f"{what} took more than {seconds:.4g} s"
        if line is not None:
            reason = f"{what} died ({self._how_it_died(process)})"
        elif patience is not None and is_over():
            reason, slow = f"{what} took more than {patience():.4g} s of a core", True
        self.end()
        raise WorkerLostError(reason, note, slow=slow)

    def core_seconds(self) -> float:
        """
        How long the process, and what it has started, have had a core; 0 where the
        system does not tell.
        """
        process, ticks = self._process, 0
        if process is None:
            return 0.0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                _, _, fields = path.read_text(encoding="utf-8").rpartition(")")
                _, _, _, session, *rest = fields.split()
                if int(session) == process.pid:
                    # Its own time, and that of its children that have ended.
                    ticks += sum(map(int, rest[7:11]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _line(
        self,
        process: subprocess.Popen[bytes],
        deadline: float,
        is_over: Callable[[], bool],
    ) -> bytes | None:
        """The next line of output; empty at its end, None if time ran out."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                rest = deadline - time.monotonic()
                if not selector.select(min(max(0.0, rest), LOOK_SECONDS)):
                    if rest <= LOOK_SECONDS or is_over():
                        return None
                    continue
                read = os.read(process.stdout.fileno(), MOST_BYTES_AT_ONCE)
                if not read:
                    return b""
                self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _start(self) -> None:
        # Not a context manager: `end` closes it, when the process is gone.
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._unread = b""
        package_folder = str(Path(cleave.__file__).parents[1])
        paths = [package_folder, os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                **self._environment,
            },
            # A group of its own, which Ctrl-C does not reach and which is killed whole.
            start_new_session=True,
        )

    def _how_it_died(self, process: subprocess.Popen[bytes]) -> str:
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
