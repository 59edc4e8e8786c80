"""A graph to its fastest kernel: search, schedule, build, check, measure, choose."""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.built_plan import BuiltPlan, load_built
from cleave.lowering.compilation.building import tilelang_is_installed
from cleave.lowering.compilation.compiled import Compiled
from cleave.lowering.compilation.device import Device, NoDeviceError, current_device
from cleave.lowering.compilation.report import versions
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.lowering.search.cache import RECORD, Entry, cache_key, source_digest
from cleave.lowering.search.candidates import (
    Candidates,
    PlannedCandidate,
    find_candidates,
)
from cleave.lowering.search.effort import DEFAULT_EFFORT, EFFORTS, Ablation
from cleave.lowering.search.floor import floor_ms
from cleave.lowering.search.folder import clear_folder, write_folder
from cleave.lowering.search.report import SearchReport, TrialReport
from cleave.lowering.search.tuning import Trial, Tuning, tune
from cleave.lowering.toolchain import find_nvcc, nvcc_version
from cleave.passes.symbolize import SymbolizePass

if TYPE_CHECKING:
    from cleave.lowering.runtime import CompiledGraph

WITHOUT_DEVICE = "h200"
"""The hardware that is compiled for where there is none."""


@dataclass(frozen=True)
class SearchOptions:
    """What is asked of a search."""

    effort: str = DEFAULT_EFFORT
    budget_seconds: float | None = None
    fast_math: bool = False
    require_gpu: bool = False
    use_cache: bool = True
    ablation: Ablation = field(default_factory=Ablation)

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            known = ", ".join(EFFORTS)
            raise CompilationError(f"effort is '{self.effort}', not one of {known}")


def compile_by_search(
    graph: GraphOp,
    options: SearchOptions,
    *,
    out_dir: Path | None = None,
    progress: Callable[[str], object] = lambda step: None,
) -> Compiled:
    """
    Compile a graph for the GPU of this machine, or without one as far as that goes.

    `out_dir` is where all files are kept; `progress` is told what is done next. Raises
    CompilationError or OSError, with a message for the user.
    """
    return _SearchCompilation(graph, options, progress).compile(out_dir)


class _SearchCompilation:
    def __init__(
        self, graph: GraphOp, options: SearchOptions, progress: Callable[[str], object]
    ) -> None:
        self.options = options
        self.progress = progress
        self.started = time.monotonic()
        self.device: Device | None = None
        self.cannot_run: str | None = None
        try:
            self.device = current_device()
        except NoDeviceError as error:
            self.cannot_run = str(error)
        self.nvcc = find_nvcc()
        if self.device is not None and self.nvcc is None:
            self.cannot_run = "there is a GPU, but no nvcc to build a kernel with"
        if options.require_gpu and self.cannot_run:
            raise CompilationError(f"a GPU is required: {self.cannot_run}")
        if not tilelang_is_installed():
            raise CompilationError(
                "TileLang is not installed, which makes CUDA of the generated module: "
                "pip install 'cleave[tilelang]'"
            )
        if self.nvcc is None:
            raise CompilationError(
                "there is no nvcc, which the search builds its candidates with; "
                "set CUDA_HOME, or state tile sizes to get the CUDA text of one kernel"
            )
        self.hardware: Hardware = (
            self.device.hardware if self.device else load_hardware(WITHOUT_DEVICE)
        )
        self.graph = symbolized(graph)
        _require_memory(self.graph, self.hardware)
        self.input_text = f"{graph}\n"
        self.versions = versions(nvcc_version(self.nvcc))

    def compile(self, out_dir: Path | None) -> Compiled:
        folder = out_dir or Path(mkdtemp(prefix="cleave-"))
        clear_folder(folder)
        try:
            compiled = self._compiled(folder)
        except BaseException:
            if out_dir is None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if out_dir is None:
            weakref.finalize(compiled, shutil.rmtree, folder, ignore_errors=True)
        return compiled

    def _compiled(self, folder: Path) -> Compiled:
        entry = Entry(cache_key(self._key()))
        if not self.options.use_cache:
            record, build = self._searched(folder)
            return self._finished(record, build, folder)
        with entry.locked(self.progress):
            if (kept := entry.load()) is not None:
                record, built = kept
                shutil.copytree(entry.folder, folder, dirs_exist_ok=True)
                (folder / RECORD).unlink()
                record["report"]["notes"].append(f"from the cache: {entry.folder}")
                return self._finished(record, built, folder)
            record, built = self._searched(folder)
            if (problem := entry.store(record, built.folder)) is not None:
                record["report"]["notes"].append(problem)
        return self._finished(record, built, folder)

    def _key(self) -> dict[str, Any]:
        options = self.options
        return {
            "graph": str(self.graph),
            "device": self.device.name if self.device else None,
            "arch": self.hardware.arch,
            "versions": self.versions,
            "source": source_digest(),
            "effort": options.effort,
            "budget_seconds": options.budget_seconds,
            "fast_math": options.fast_math,
            "ablation": vars(options.ablation),
        }

    def _searched(self, folder: Path) -> tuple[dict[str, Any], BuiltPlan]:
        """The record of a search, and the build of what it chose, in `folder`."""
        effort = EFFORTS[self.options.effort]
        start = time.monotonic()
        found = find_candidates(
            self.graph,
            effort,
            self.hardware,
            self.options.ablation,
            self.options.fast_math,
            self.progress,
        )
        seconds = {"search": time.monotonic() - start}
        budget = self.options.budget_seconds
        with TemporaryDirectory(prefix="cleave-") as scratch:
            tuning = tune(
                self.graph,
                found.plans,
                self.hardware,
                Path(scratch),
                on_device=self.cannot_run is None,
                repeats=effort.repeats,
                deadline=None if budget is None else self.started + budget,
                progress=self.progress,
            )
            tuning.seconds = {**seconds, **tuning.seconds}
            chosen = tuning.chosen
            assert chosen.built is not None  # what is right was built
            shutil.copytree(chosen.built.folder, folder, dirs_exist_ok=True)
        report = self._report(found, tuning)
        stages = _stages(self.input_text, chosen.candidate)
        record = {
            "report": report.json(),
            "source": chosen.candidate.source,
            "stages": stages,
        }
        return record, BuiltPlan(
            folder,
            chosen.built.plan,
            chosen.built.arch,
            chosen.built.versions,
            chosen.built.kernels,
        )

    def _finished(
        self, record: dict[str, Any], built: BuiltPlan, folder: Path
    ) -> Compiled:
        report = SearchReport.of_json(record["report"])
        write_folder(folder, record["stages"], record["source"], report)
        runnable: CompiledGraph | None = None
        if self.cannot_run is None:
            from cleave.lowering.runtime import load_compiled

            runnable = load_compiled(load_built(folder))
        return Compiled(record["source"], record["stages"], report, folder, runnable)

    def _report(self, found: Candidates, tuning: Tuning) -> SearchReport:
        chosen = tuning.chosen
        check = chosen.check
        assert check is not None
        assert chosen.built is not None
        binding = self.graph.facts.binding
        kernels = [r for kernel in chosen.built.kernels for r in kernel.reports]
        unfused = [t.measured_ms for t in tuning.trials if t.candidate.is_unfused]
        trials = [_trial_report(trial) for trial in tuning.trials]
        next_number = len(trials)
        trials += [
            TrialReport(next_number + n, [schedule], 0.0, None, None, reason, False)
            for n, (schedule, reason) in enumerate(found.refused)
        ]
        return SearchReport(
            graph=self.graph.graph_name,
            sizes={n: v for n, v in binding.items() if isinstance(v, int)},
            effort=self.options.effort,
            hardware={"name": self.hardware.name, "arch": self.hardware.arch},
            device=self.device.name if self.device else None,
            chosen=chosen.candidate.schedules,
            chosen_graphs=chosen.candidate.graphs,
            chosen_number=chosen.number,
            kernels=[kernel.literal() for kernel in kernels],
            faults=chosen.faults,
            checked=check.method,
            checked_sizes=check.sizes,
            max_error=check.max_error,
            allowed_error=check.max_allowed,
            predicted_ms=chosen.candidate.predicted_ms,
            measured_ms=chosen.measured_ms,
            not_measured=self.cannot_run,
            unfused_ms=next((ms for ms in unfused if ms is not None), None),
            floor_ms=floor_ms(self.graph, self.hardware),
            candidates=found.graphs,
            evaluated=found.pruned.evaluated,
            pruned={**found.pruned.by_rule, **found.pruned.refused},
            trials=trials,
            notes=[*found.notes, *tuning.notes],
            versions=self.versions,
            seconds={name: round(s, 3) for name, s in tuning.seconds.items()},
        )


def symbolized(graph: GraphOp) -> GraphOp:
    """A copy with symbols in the place of numbers; sizes have to be bound."""
    module = ModuleOp([graph.clone()])
    try:
        SymbolizePass().apply(Context(), module)
        module.verify()
    except (PassFailedException, VerifyException) as error:
        raise CompilationError(f"@{graph.graph_name}: {error}") from error
    symbolic = module.body.block.first_op
    assert isinstance(symbolic, GraphOp)
    symbolic.detach()
    unbound = [
        name
        for name in symbolic.symbol_names
        if not isinstance(symbolic.facts.binding.get(name), int)
    ]
    if unbound:
        raise CompilationError(
            f"@{graph.graph_name}: {unbound[0]} has no size, which the search needs; "
            f"write `where [{unbound[0]} = ...]`"
        )
    return symbolic


def _require_memory(graph: GraphOp, hardware: Hardware) -> None:
    """Raises CompilationError if not even inputs and results fit into memory."""
    facts = graph.facts
    taken = 0
    for type_ in [*graph.input_types, *graph.output_types]:
        dims = [facts.resolve(dim) for dim in type_.dims]
        sizes = [dim for dim in dims if isinstance(dim, int)]
        if len(sizes) == len(dims):
            taken += prod(sizes) * element_bytes(type_.element_type)
    if taken > hardware.memory_bytes:
        raise CompilationError(
            f"@{graph.graph_name}: inputs and results take {taken / 1e9:,.0f} GB, "
            f"but {hardware.name} has {hardware.memory_bytes / 1e9:,.0f} GB"
        )


def _trial_report(trial: Trial) -> TrialReport:
    return TrialReport(
        trial.number,
        trial.candidate.schedules,
        trial.candidate.predicted_ms,
        trial.measured_ms,
        trial.check.max_error if trial.check else None,
        trial.reason,
        trial.candidate.is_unfused,
    )


def _stages(input_text: str, chosen: PlannedCandidate) -> dict[str, str]:
    """The IR that the chosen kernels come from."""
    return {
        "input": input_text,
        "chosen-graphs": "".join(f"{graph}\n" for graph in chosen.graphs),
        "select-schedules": f"{chosen.plan}\n",
    }
