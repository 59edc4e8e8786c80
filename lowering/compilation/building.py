"""Candidates on their way to machine code, as far as this machine can take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cleave.lowering.built_plan import MODULE, BuiltPlan
from cleave.lowering.compile_workers import CompileJob, compile_all
from cleave.lowering.cuda import LoweringError, lower
from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import Hardware
from cleave.lowering.kernel_report import legality, name_of
from cleave.lowering.toolchain import find_nvcc


class BuildError(Exception):
    """
    A generated module that has no kernel that can run; the message is one line.
    `is_lost` says that this may not happen again (`CompileOutcome`).
    """

    def __init__(self, message: str, is_lost: bool = False) -> None:
        super().__init__(message)
        self.is_lost = is_lost


@dataclass(frozen=True)
class Build:
    """
    What became of a generated module, in `folder`.

    `built` is None without nvcc; then only the CUDA text is there. `kernels` has a dict
    for each `__global__` function, as JSON takes it. `faults` are reasons why kernels
    are slower than planned; empty if they are legal in every respect. `only_lacks` says
    that they lack instructions and nothing else: types and strides keep those from
    being used, and other tile sizes would change nothing.
    """

    folder: Path
    built: BuiltPlan | None
    kernels: Sequence[dict[str, Any]]
    faults: Sequence[str]
    only_lacks: bool = False


def build_module(source: str, hardware: Hardware, folder: Path) -> Build:
    """
    Build the generated module `source` into a new folder, without using a GPU.

    Raises BuildError for what a compiler refuses and what does not fit the hardware.
    """
    folder.mkdir(parents=True)
    module = folder / MODULE
    module.write_text(source, encoding="utf-8")
    if find_nvcc() is None:
        return _lowered(module, hardware, folder)
    job = CompileJob(folder.name, module, hardware.arch, folder)
    (outcome,) = compile_all([job])
    if outcome.built is None:
        raise BuildError(outcome.reason or "not built", outcome.is_lost)
    return _judged(outcome.built, hardware)


def _judged(built: BuiltPlan, hardware: Hardware) -> Build:
    reports = [report for kernel in built.kernels for report in kernel.reports]
    only_lacks = True
    for report in reports:
        # The report of a kernel that takes as much and has no fault but that.
        faultless = replace(
            report,
            spill_store_bytes=0,
            spill_load_bytes=0,
            stack_bytes=0,
            serialized=(),
        )
        if too_large := legality(faultless, hardware):
            raise BuildError(f"{report.name}: {too_large[0]}")
        only_lacks &= not legality(report, hardware)
    kernels = [report.literal() for report in reports]
    return Build(built.folder, built, kernels, built.legality(hardware), only_lacks)


def _lowered(module: Path, hardware: Hardware, folder: Path) -> Build:
    """The CUDA text alone, with what can be known of kernels without compiling them."""
    try:
        lowered = lower(load_generated(module), hardware.arch)
    except LoweringError as error:
        raise BuildError(str(error)) from error
    kernels: list[dict[str, Any]] = []
    for kernel in lowered:
        (folder / f"{kernel.function}.cu").write_text(kernel.cuda, encoding="utf-8")
        for symbol, launch in kernel.launches.items():
            name = name_of(kernel.function, symbol, kernel.launches)
            if launch.dynamic_smem_bytes > hardware.smem_bytes_per_block:
                raise BuildError(
                    f"{name}: SMEM of {launch.dynamic_smem_bytes} bytes, "
                    f"a threadblock has {hardware.smem_bytes_per_block}"
                )
            kernels.append(
                {
                    "name": name,
                    "arch": hardware.arch,
                    "threads": launch.threads,
                    "dynamic_smem_bytes": launch.dynamic_smem_bytes,
                }
            )
    return Build(folder, None, kernels, ())
