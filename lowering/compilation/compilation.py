"""
A graph to a kernel: the first configuration that fits, builds and computes the right.

    graph -> configurations -> passes -> TileLang -> machine code -> check -> time

Configurations are tried in the order in which they come. One that does not fit, does
not build or gives wrong numbers is rejected with a reason, and the next one is tried.
One that builds with a fault, such as registers that spill, is kept until there is a
better one.
"""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.building import (
    Build,
    BuildError,
    build_module,
)
from cleave.lowering.compilation.choices import choices_for
from cleave.lowering.compilation.compiled import Compiled
from cleave.lowering.compilation.default_configurations import Choice
from cleave.lowering.compilation.device import (
    Device,
    NoDeviceError,
    hardware_of,
    visible_device,
)
from cleave.lowering.compilation.device_worker import CandidateError, DeviceWorker
from cleave.lowering.compilation.folder import write_build, write_report, write_texts
from cleave.lowering.compilation.footprint import require_fit
from cleave.lowering.compilation.pipeline import (
    NoProgramError,
    TileProgram,
    prepare,
    schedule,
)
from cleave.lowering.compilation.report import Rejection, Report
from cleave.lowering.compilation.supported import require_supported
from cleave.lowering.compilation.tile_check import check_tiles
from cleave.lowering.compilation.wanted import CompilationError, Wanted
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.toolchain import (
    find_nvcc,
    nvcc_version,
    tilelang_is_installed,
)
from cleave.lowering.versions import versions

MOST_BUILDS = 4
"""How many configurations are built before the best of them is taken as it is."""
REPEATS = 40
"""Samples of the time of a kernel."""


REFUSALS = (BuildError, NoProgramError, ExecutionError, CandidateError)
"""What is wrong with one configuration."""


@dataclass(frozen=True)
class _Candidate:
    """A configuration that was built and computes the right numbers."""

    choice: Choice
    program: TileProgram
    source: str
    build: Build
    check: NumericCheck


def compile_graph(
    graph: GraphOp,
    wanted: Wanted,
    *,
    out_dir: Path | None = None,
    progress: Callable[[str], object] = lambda step: None,
    notes: Sequence[str] = (),
) -> Compiled:
    """
    Compile a graph for the GPU of this machine, or without one as far as that goes.

    `out_dir` is where all files are kept; `progress` is told what is done next; `notes`
    go into the report. Raises CompilationError, PassFailedException or OSError, with a
    message for the user.
    """
    return _Compilation(graph, wanted, progress, notes).compile(out_dir)


class _Compilation:
    def __init__(
        self,
        graph: GraphOp,
        wanted: Wanted,
        progress: Callable[[str], object],
        notes: Sequence[str],
    ) -> None:
        self.wanted = wanted
        self.progress = progress
        self.notes = notes
        self.rejected: list[Rejection] = []
        self.seconds: dict[str, float] = {}
        self.device: Device | None = None
        self.cannot_run: str | None = None
        self.worker: DeviceWorker | None = None
        """What runs candidates; None if nothing does."""
        try:
            self.device = visible_device()
        except NoDeviceError as error:
            self.cannot_run = str(error)
        if self.device is not None and find_nvcc() is None:
            self.cannot_run = "there is a GPU, but no nvcc to build a kernel with"
        self._require_gpu()
        self.hardware = hardware_of(self.device)
        require_supported(graph, self.hardware)
        try:
            with self._timed("schedule"):
                self.prepared = prepare(graph)
        except NoProgramError as error:
            raise CompilationError(f"@{graph.graph_name}: {error}") from error
        self.graph = self.prepared.symbolic

    def compile(self, out_dir: Path | None) -> Compiled:
        if out_dir is not None:
            return self._compiled(out_dir)
        folder = Path(mkdtemp(prefix="cleave-"))
        try:
            compiled = self._compiled(folder)
        except BaseException:
            shutil.rmtree(folder)
            raise
        weakref.finalize(compiled, shutil.rmtree, folder, ignore_errors=True)
        return compiled

    def _compiled(self, folder: Path) -> Compiled:
        with ExitStack() as stack:
            scratch = stack.enter_context(TemporaryDirectory(prefix="cleave-"))
            if self.device is not None and self.cannot_run is None:
                worker = DeviceWorker(self.graph, self.device)
                self._prepare(stack.enter_context(worker))
            best = self._best(folder, Path(scratch))
            measured_ms, not_measured = self._measured(best)
            report = self._report(best, measured_ms, not_measured)
            write_texts(folder, best.program.stages, best.source)
            write_build(folder, best.build.folder)
            write_report(folder, report)
        number = self.device.number if self.device and not self.cannot_run else None
        return Compiled(best.source, best.program.stages, report, folder, number)

    def _prepare(self, worker: DeviceWorker) -> None:
        """Have the exact results on the GPU, if PyTorch has one."""
        self.progress("check: the reference on the GPU")
        try:
            with self._timed("check"):
                worker.prepare()
            self.worker = worker
        except NoDeviceError as error:
            self.device, self.cannot_run = None, str(error)
            self._require_gpu()

    def _require_gpu(self) -> None:
        if self.wanted.require_gpu and self.cannot_run:
            raise CompilationError(f"a GPU is required: {self.cannot_run}")

    # Candidates

    def _best(self, folder: Path, scratch: Path) -> _Candidate:
        """The first of those that are built that has no faults, or the first."""
        candidates: list[_Candidate] = []
        for number, (choice, program, source) in enumerate(self._programs()):
            # Also what is rejected in the end can be looked at.
            write_texts(folder, program.stages, source)
            _require_tilelang()
            try:
                candidate = self._tried(choice, program, source, scratch / str(number))
            except REFUSALS as error:
                self._reject(choice, str(error))
            else:
                if not candidate.build.faults or candidate.build.only_lacks:
                    for other in candidates:
                        self._reject(other.choice, other.build.faults[0])
                    return candidate
                candidates.append(candidate)
            if number + 1 == MOST_BUILDS:
                break
        if not candidates:
            raise CompilationError(self._failure())
        for other in candidates[1:]:
            self._reject(other.choice, other.build.faults[0])
        return candidates[0]

    def _programs(self) -> Iterator[tuple[Choice, TileProgram, str]]:
        """The configurations that have a program which fits, as far as can be told."""
        with self._timed("schedule"):
            choices = choices_for(self.prepared.graph, self.wanted, self.hardware)
        for choice in choices:
            self.progress(f"schedule: {choice.configuration}")
            try:
                with self._timed("schedule"):
                    program = schedule(self.prepared, choice.configuration)
                    source = program.source(fast_math=self.wanted.fast_math)
                    require_fit(program.plan, self.hardware)
            except NoProgramError as error:
                self._reject(choice, str(error))
            else:
                yield choice, program, source

    def _tried(
        self, choice: Choice, program: TileProgram, source: str, folder: Path
    ) -> _Candidate:
        """Build and check a candidate. Raises one of REFUSALS."""
        if self.worker is None:
            self.progress(f"check in NumPy: {choice.configuration}")
            with self._timed("check"):
                check = check_tiles(self.graph, program)
            _require_right(check)
            build = self._built(choice, source, folder)
        else:
            build = self._built(choice, source, folder)
            assert build.built is not None  # there is an nvcc
            self.progress(f"check on the GPU: {choice.configuration}")
            with self._timed("check"):
                check = self.worker.check(build.folder)
            _require_right(check)
        return _Candidate(choice, program, source, build, check)

    def _built(self, choice: Choice, source: str, folder: Path) -> Build:
        self.progress(f"build: {choice.configuration}")
        with self._timed("build"):
            return build_module(source, self.hardware, folder)

    def _reject(self, choice: Choice, reason: str) -> None:
        self.rejected.append(Rejection(choice.configuration, reason))

    def _failure(self) -> str:
        last = self.rejected[-1]
        if len(self.rejected) == 1:
            return f"@{self.graph.graph_name}: {last.reason}"
        return (
            f"@{self.graph.graph_name}: none of {len(self.rejected)} configurations "
            f"works; the last one, {last.configuration}: {last.reason}"
        )

    # The one that was chosen

    def _measured(self, best: _Candidate) -> tuple[float | None, str | None]:
        """Its time in milliseconds, or why there is none."""
        if self.worker is None or best.build.built is None:
            return None, self.cannot_run
        if dynamic := best.build.built.plan.dynamic_dims:
            return None, f"{', '.join(dynamic)} is only known at run time"
        self.progress(f"time: {best.choice.configuration}")
        name = self.graph.graph_name
        with self._timed("measure"):
            found = self.worker.measure({name: best.build.folder}, REPEATS)
        return found.times.get(name), found.rejected.get(name)

    def _report(
        self, best: _Candidate, measured_ms: float | None, not_measured: str | None
    ) -> Report:
        binding = self.graph.facts.binding
        sizes = {name: binding.get(name) for name in self.graph.symbol_names}
        kernels = [
            op for op in best.program.plan.body.block.ops if isinstance(op, KernelOp)
        ]
        nvcc = find_nvcc()
        return Report(
            graph=self.graph.graph_name,
            sizes={n: s if isinstance(s, int) else None for n, s in sizes.items()},
            hardware=self.hardware,
            device=self.device.name if self.device else None,
            configuration=best.choice.configuration,
            threads=max(k.threads.value.data for k in kernels if k.threads),
            form=", ".join(dict.fromkeys(k.form.data for k in kernels if k.form)),
            why=best.choice.why,
            kernels=best.build.kernels,
            faults=best.build.faults,
            check=best.check,
            measured_ms=measured_ms,
            not_measured=not_measured,
            rejected=self.rejected,
            versions=versions(nvcc_version(nvcc) if nvcc else None),
            seconds=self.seconds,
            notes=self.notes,
        )

    @contextmanager
    def _timed(self, phase: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = self.seconds.get(phase, 0.0) + spent


def _require_right(check: NumericCheck) -> None:
    if check.reasons:
        raise ExecutionError(f"wrong numbers ({check.method}): {check.reasons[0]}")


def _require_tilelang() -> None:
    if not tilelang_is_installed():
        raise CompilationError(
            "TileLang is not installed, which makes CUDA of the generated module: "
            "pip install 'cleave[tilelang]'"
        )
