"""
Candidates of one graph on the GPU: right or not, and how fast.

They run in a process of their own. One that faults, or that never ends, is rejected
with the reason, and the others go on in another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.device import Device, NoDeviceError
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.serving import LAST
from cleave.lowering.worker import Worker, WorkerLostError

PROCESS = "cleave.lowering.compilation.device_process"
PREPARE_SECONDS = 300.0
"""For the import of PyTorch, a CUDA context, and a reference in float64."""
RUN_SECONDS = 60.0
"""For the check of a candidate, or one sample of its time."""


class CandidateError(Exception):
    """
    A candidate that cannot be run; the message is one line that says why. `is_lost`
    says that its process died, came to no end or had no memory, as it may not again.
    """

    def __init__(self, message: str, is_lost: bool = False) -> None:
        super().__init__(message)
        self.is_lost = is_lost


@dataclass(frozen=True)
class Measured:
    """Median milliseconds of candidates, and why others have none, by name."""

    times: Mapping[str, float]
    rejected: Mapping[str, CandidateError]


class DeviceWorker:
    """The GPU for the candidates of one graph. To be entered, and left at the end."""

    def __init__(
        self,
        graph: GraphOp,
        device: Device,
        process: str = PROCESS,
        run_seconds: float = RUN_SECONDS,
    ) -> None:
        self._graph = graph
        self._device = device
        self._run_seconds = run_seconds
        self._worker = Worker(process, {})
        self._is_prepared = False

    def __enter__(self) -> Self:
        """Start the process, which imports PyTorch while candidates are built."""
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def prepare(self) -> None:
        """
        Have inputs and exact results, in a process that runs.

        Raises NoDeviceError if PyTorch has no GPU, CompilationError if it cannot
        compute the graph, for want of memory or for any other reason.
        """
        if self._is_prepared:
            return
        request = {
            "do": "prepare",
            "graph": str(self._graph),
            "number": self._device.number,
        }
        try:
            answer = self._ask(request, PREPARE_SECONDS, "the reference")
        except WorkerLostError as error:
            raise CompilationError(f"@{self._graph.graph_name}: {error}") from error
        if (reason := answer.get("no_device")) is not None:
            raise NoDeviceError(reason)
        if (reason := answer.get("error")) is not None:
            raise CompilationError(reason)
        self._is_prepared = True

    def check(self, folder: Path) -> NumericCheck:
        """
        Run the plan that was built into a folder, and compare its results.

        Raises CandidateError, and what `prepare` raises.
        """
        self.prepare()
        request = {"do": "check", "folder": str(folder)}
        try:
            answer = self._ask(request, self._run_seconds, "a run")
        except WorkerLostError as error:
            raise CandidateError(f"does not run: {error}", is_lost=True) from error
        if (reason := answer.get("error")) is not None:
            raise CandidateError(f"does not run: {reason}", answer["is_lost"])
        return NumericCheck.parse(answer["check"])

    def measure(self, folders: Mapping[str, Path], repeats: int) -> Measured:
        """
        Time built plans by name, alternating in one run; again without one that faults.

        Raises what `prepare` raises, and CompilationError for a fault of none of them.
        """
        left = {name: str(folder) for name, folder in folders.items()}
        rejected: dict[str, CandidateError] = {}
        while left:
            self.prepare()
            request = {"do": "measure", "folders": left, "repeats": repeats}
            is_lost = False
            try:
                answer = self._ask(request, self._run_seconds, "a sample")
                if "times" in answer:
                    return Measured(answer["times"], rejected)
                name, reason = answer["at"], answer["error"]
                is_lost = answer["is_lost"]
            except WorkerLostError as error:
                name, reason, is_lost = error.note, str(error), True
            if name not in left:
                raise CompilationError(f"plans cannot be timed: {reason}")
            del left[name]
            rejected[name] = CandidateError(f"cannot be timed: {reason}", is_lost)
        return Measured({}, rejected)

    def _ask(
        self, request: Mapping[str, Any], seconds: float, what: str
    ) -> dict[str, Any]:
        try:
            answer = self._worker.ask(request, seconds, what)
        except WorkerLostError:
            self._end()
            raise
        if answer.get(LAST):
            self._end()
        return answer

    def _end(self) -> None:
        self._is_prepared = False
        self._worker.end()
