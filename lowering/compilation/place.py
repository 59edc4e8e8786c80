"""Where kernels are meant to run: a GPU of this machine, or a kind of GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cleave.lowering.compilation.device import (
    Device,
    NoDeviceError,
    hardware_of,
    visible_device,
)
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware
from cleave.lowering.toolchain import find_nvcc, nvcc_version
from cleave.lowering.versions import versions


@dataclass(frozen=True)
class Place:
    """
    What is compiled for. `device` is None without a GPU; `cannot_run` says why kernels
    do not run, and is None if they do. `versions` has nvcc's if there is one.
    """

    hardware: Hardware
    device: Device | None
    cannot_run: str | None
    versions: Mapping[str, str]


def this_place() -> Place:
    """What this machine has, as far as its driver and its files tell."""
    device: Device | None = None
    cannot_run: str | None = None
    nvcc = find_nvcc()
    try:
        device = visible_device()
        if nvcc is None:
            cannot_run = "there is a GPU, but no nvcc to build a kernel with"
    except NoDeviceError as error:
        cannot_run = str(error)
    known = versions(nvcc_version(nvcc) if nvcc else None)
    return Place(hardware_of(device), device, cannot_run, known)


def require_gpu(cannot_run: str | None) -> None:
    """Raises CompilationError if there is a reason why kernels do not run."""
    if cannot_run is not None:
        raise CompilationError(f"a GPU is required: {cannot_run}")
