"""The GPU of this machine: whether there is one, and what is known of its kind."""

from __future__ import annotations

from dataclasses import dataclass

from cleave.lowering.driver import DriverError, visible_gpu
from cleave.lowering.hardware import (
    Hardware,
    HardwareError,
    hardware_of_capability,
    load_hardware,
)

WITHOUT_DEVICE = "h200"
"""The hardware that is compiled for where there is none."""


@dataclass(frozen=True)
class Device:
    """A GPU that kernels can run on, by its number in PyTorch, and its kind."""

    number: int
    name: str
    hardware: Hardware


class NoDeviceError(Exception):
    """No GPU that kernels can run on; the message says what is missing."""


def visible_device() -> Device:
    """
    The GPU that the driver shows to this process, which need not be one for PyTorch.

    Raises NoDeviceError if there is none, or none that Cleave has a description of.
    """
    try:
        gpu = visible_gpu()
        return Device(gpu.number, gpu.name, hardware_of_capability(gpu.capability))
    except (DriverError, HardwareError) as error:
        raise NoDeviceError(str(error)) from error


def hardware_of(device: Device | None) -> Hardware:
    """What is compiled for on this machine."""
    return load_hardware(WITHOUT_DEVICE) if device is None else device.hardware


def require_torch() -> None:
    """Raises NoDeviceError if PyTorch, which takes seconds to import, has no GPU."""
    try:
        import torch
    except ImportError as error:
        raise NoDeviceError(f"PyTorch cannot be imported: {error}") from error
    if not torch.cuda.is_available():
        raise NoDeviceError(f"PyTorch {torch.__version__} has no CUDA device")
