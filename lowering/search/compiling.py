"""
A graph to its fastest kernel: from the cache, or by the search.

A result in the cache is printed in a second or two: nothing here imports PyTorch or
TileLang, and NumPy and the passes of the search come with the search alone.
"""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.compiled import Compiled
from cleave.lowering.compilation.device import (
    Device,
    NoDeviceError,
    hardware_of,
    visible_device,
)
from cleave.lowering.compilation.supported import require_supported
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.search.cache import RECORD, Entry, cache_key, source_digest
from cleave.lowering.search.effort import DEFAULT_EFFORT, EFFORTS, Ablation
from cleave.lowering.search.folder import clear_folder, copy_files, write_folder
from cleave.lowering.search.report import SearchReport
from cleave.lowering.toolchain import find_nvcc, nvcc_version, tilelang_is_installed
from cleave.lowering.versions import versions
from cleave.passes.symbolize import SymbolizePass


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
            self.device = visible_device()
        except NoDeviceError as error:
            self.cannot_run = str(error)
        self._require_gpu(self.cannot_run)
        if not tilelang_is_installed():
            raise CompilationError(
                "TileLang is not installed, which makes CUDA of the generated module: "
                "pip install 'cleave[tilelang]'"
            )
        nvcc = find_nvcc()
        if nvcc is None:
            raise CompilationError(
                "there is no nvcc, which the search builds its candidates with; "
                "set CUDA_HOME, or state tile sizes to get the CUDA text of one kernel"
            )
        self.hardware = hardware_of(self.device)
        require_supported(graph, self.hardware)
        self.graph = symbolized(graph)
        self.input_text = f"{graph}\n"
        self.versions = versions(nvcc_version(nvcc))

    def compile(self, out_dir: Path | None) -> Compiled:
        folder = out_dir or Path(mkdtemp(prefix="cleave-"))
        try:
            clear_folder(folder)
            compiled = self._compiled(folder)
        except BaseException:
            if out_dir is None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if out_dir is None:
            weakref.finalize(compiled, shutil.rmtree, folder, ignore_errors=True)
        return compiled

    def _compiled(self, folder: Path) -> Compiled:
        if not self.options.use_cache:
            return self._finished(self._searched(folder), folder)
        entry = Entry(cache_key(self._key()))
        with entry.locked(self.progress):
            if (record := entry.load()) is not None:
                copy_files(entry.folder, folder, but=RECORD)
                record["report"]["notes"].append(f"from the cache: {entry.folder}")
                return self._finished(record, folder)
            record = self._searched(folder)
            if self.device is not None and record["report"]["not_measured"]:
                pass  # a GPU that is there may run kernels the next time
            elif (problem := entry.store(record, folder)) is not None:
                record["report"]["notes"].append(problem)
        return self._finished(record, folder)

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

    def _searched(self, folder: Path) -> dict[str, Any]:
        """The record of a search, whose build is in `folder`."""
        # All that a result in the cache needs nothing of.
        from cleave.lowering.search.searching import Place, searched

        options = self.options
        budget = options.budget_seconds
        report, chosen = searched(
            self.graph,
            folder,
            Place(self.hardware, self.device, self.cannot_run, self.versions),
            effort=options.effort,
            ablation=options.ablation,
            fast_math=options.fast_math,
            deadline=None if budget is None else self.started + budget,
            progress=self.progress,
        )
        stages = {
            "input": self.input_text,
            "chosen-graphs": "".join(f"{graph}\n" for graph in chosen.graphs),
            "select-schedules": f"{chosen.plan}\n",
        }
        return {
            "report": report.json(),
            "source": chosen.source,
            "stages": stages,
        }

    def _finished(self, record: dict[str, Any], folder: Path) -> Compiled:
        report = SearchReport.of_json(record["report"])
        self._require_gpu(report.not_measured)
        stages: dict[str, str] = record["stages"]
        write_folder(folder, stages, record["source"], report)
        can_run = report.not_measured is None
        number = self.device.number if self.device and can_run else None
        return Compiled(record["source"], stages, report, folder, number)

    def _require_gpu(self, cannot_run: str | None) -> None:
        if self.options.require_gpu and cannot_run is not None:
            raise CompilationError(f"a GPU is required: {cannot_run}")


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
