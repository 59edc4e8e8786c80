"""
A graph to a kernel: the first configuration that fits, builds and computes the right.

    graph -> configurations -> passes -> TileLang -> machine code -> check -> time

Configurations are tried in the order in which they come. One that does not fit, does
not build or gives wrong numbers is rejected with a reason, and the next one is tried.
One that builds with a fault, such as registers that spill, is kept until there is a
better one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.building import Build, BuildError, build_module
from cleave.lowering.compilation.choices import choices_for
from cleave.lowering.compilation.default_configurations import Choice
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compilation.device_worker import CandidateError, DeviceWorker
from cleave.lowering.compilation.folder import write_texts
from cleave.lowering.compilation.footprint import require_fit
from cleave.lowering.compilation.outcome import Candidate, Rejection, report_of
from cleave.lowering.compilation.pipeline import (
    NoProgramError,
    TileProgram,
    prepare,
    schedule,
)
from cleave.lowering.compilation.place import Place, require_gpu
from cleave.lowering.compilation.tile_check import check_tiles
from cleave.lowering.compilation.wanted import CompilationError, Wanted
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.phases import timed
from cleave.lowering.report_page.graph_picture import pictures
from cleave.lowering.search.folder import copy_files
from cleave.lowering.toolchain import tilelang_is_installed

MOST_BUILDS = 4
"""How many configurations are built before the best of them is taken as it is."""
REPEATS = 40
"""Samples of the time of a kernel."""


REFUSALS = (BuildError, NoProgramError, ExecutionError, CandidateError)
"""What is wrong with one configuration."""


def compile_graph(
    graph: GraphOp,
    wanted: Wanted,
    place: Place,
    folder: Path,
    progress: Callable[[str], object],
) -> dict[str, Any]:
    """
    Compile a graph for a place. Its build is in `folder`; what is returned is the
    `report`, the `source`, the `stages` and the `pictures`, as JSON takes them.

    Raises CompilationError, PassFailedException or OSError, with a message for the
    user.
    """
    return _Compilation(graph, wanted, place, progress).compile(folder)


class _Compilation:
    def __init__(
        self,
        graph: GraphOp,
        wanted: Wanted,
        place: Place,
        progress: Callable[[str], object],
    ) -> None:
        self.wanted = wanted
        self.progress = progress
        self.rejected: list[Rejection] = []
        self.seconds: dict[str, float] = {}
        self.place = place
        self.hardware = place.hardware
        self.worker: DeviceWorker | None = None
        """What runs candidates; None if nothing does."""
        try:
            with timed(self.seconds, "schedule"):
                self.prepared = prepare(graph)
        except NoProgramError as error:
            raise CompilationError(f"@{graph.graph_name}: {error}") from error
        self.graph = self.prepared.symbolic

    def compile(self, folder: Path) -> dict[str, Any]:
        with ExitStack() as stack:
            scratch = stack.enter_context(TemporaryDirectory(prefix="cleave-"))
            device = self.place.device
            if device is not None and self.place.cannot_run is None:
                worker = DeviceWorker(self.graph, device)
                self._prepare(stack.enter_context(worker))
            best = self._best(folder, Path(scratch))
            measured_ms, not_measured = self._measured(best)
            report = report_of(
                self.prepared,
                self.place,
                best,
                self.rejected,
                measured_ms,
                not_measured,
                self.seconds,
            )
            copy_files(best.build.folder, folder)
        return {
            "report": report.json(),
            "source": best.source,
            "stages": dict(best.program.stages),
            "pictures": pictures(self.graph, [self.prepared.graph]),
        }

    def _prepare(self, worker: DeviceWorker) -> None:
        """Have the exact results on the GPU, if PyTorch has one."""
        self.progress("check: the reference on the GPU")
        try:
            with timed(self.seconds, "check"):
                worker.prepare()
            self.worker = worker
        except NoDeviceError as error:
            self.place = replace(self.place, device=None, cannot_run=str(error))
            if self.wanted.require_gpu:
                require_gpu(self.place.cannot_run)

    # Candidates

    def _best(self, folder: Path, scratch: Path) -> Candidate:
        """The first of those that are built that has no faults, or the first."""
        candidates: list[Candidate] = []
        for number, (choice, program, source) in enumerate(self._programs()):
            # Also what is rejected in the end can be looked at.
            write_texts(folder, program.stages, source)
            _require_tilelang()
            try:
                candidate = self._tried(choice, program, source, scratch / str(number))
            except REFUSALS as error:
                self._reject(choice, error)
            else:
                if not candidate.build.faults or candidate.build.only_lacks:
                    self._reject_faulty(candidates)
                    return candidate
                candidates.append(candidate)
            if number + 1 == MOST_BUILDS:
                break
        if not candidates:
            raise CompilationError(self._failure())
        self._reject_faulty(candidates[1:])
        return candidates[0]

    def _programs(self) -> Iterator[tuple[Choice, TileProgram, str]]:
        """The configurations that have a program which fits, as far as can be told."""
        with timed(self.seconds, "schedule"):
            choices = choices_for(self.prepared.graph, self.wanted, self.hardware)
        for choice in choices:
            self.progress(f"schedule: {choice.configuration}")
            try:
                with timed(self.seconds, "schedule"):
                    program = schedule(self.prepared, choice.configuration)
                    source = program.source(fast_math=self.wanted.fast_math)
                    require_fit(program.plan, self.hardware)
            except NoProgramError as error:
                self._reject(choice, error)
            else:
                yield choice, program, source

    def _tried(
        self, choice: Choice, program: TileProgram, source: str, folder: Path
    ) -> Candidate:
        """Build and check a candidate. Raises one of REFUSALS."""
        if self.worker is None:
            self.progress(f"check in NumPy: {choice.configuration}")
            with timed(self.seconds, "check"):
                check = check_tiles(self.graph, program)
            _require_right(check)
            build = self._built(choice, source, folder)
        else:
            build = self._built(choice, source, folder)
            assert build.built is not None  # there is an nvcc
            self.progress(f"check on the GPU: {choice.configuration}")
            with timed(self.seconds, "check"):
                check = self.worker.check(build.folder)
            _require_right(check)
        return Candidate(choice, program, source, build, check)

    def _built(self, choice: Choice, source: str, folder: Path) -> Build:
        self.progress(f"build: {choice.configuration}")
        with timed(self.seconds, "build"):
            return build_module(source, self.hardware, folder)

    def _reject(self, choice: Choice, error: Exception) -> None:
        is_lost = isinstance(error, BuildError | CandidateError) and error.is_lost
        self.rejected.append(Rejection(choice.configuration, str(error), None, is_lost))

    def _reject_faulty(self, candidates: Sequence[Candidate]) -> None:
        self.rejected += [
            Rejection(each.choice.configuration, each.build.faults[0], each.check)
            for each in candidates
        ]

    def _failure(self) -> str:
        last = self.rejected[-1]
        if len(self.rejected) == 1:
            return f"@{self.graph.graph_name}: {last.reason}"
        return (
            f"@{self.graph.graph_name}: none of {len(self.rejected)} configurations "
            f"works; the last one, {last.configuration}: {last.reason}"
        )

    # The one that was chosen

    def _measured(self, best: Candidate) -> tuple[float | None, str | None]:
        """Its time in milliseconds, or why there is none."""
        if self.worker is None or best.build.built is None:
            return None, self.place.cannot_run
        if dynamic := best.build.built.plan.dynamic_dims:
            return None, f"{', '.join(dynamic)} is only known at run time"
        self.progress(f"time: {best.choice.configuration}")
        name = self.graph.graph_name
        with timed(self.seconds, "measure"):
            found = self.worker.measure({name: best.build.folder}, REPEATS)
        error = found.rejected.get(name)
        return found.times.get(name), None if error is None else str(error)


def _require_right(check: NumericCheck) -> None:
    if check.reasons:
        raise ExecutionError(f"wrong numbers ({check.method}): {check.reasons[0]}")


def _require_tilelang() -> None:
    if not tilelang_is_installed():
        raise CompilationError(
            "TileLang is not installed, which makes CUDA of the generated module: "
            "pip install 'cleave[tilelang]'"
        )
