"""
What the NVIDIA driver says about the GPU of this machine, in a tenth of a second.

PyTorch takes seconds to import and to make a context; the driver is asked without both.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

LIBRARY = "libcuda.so.1"
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76
"""Attributes of a device (CUDA driver API, CUdevice_attribute)."""
NAME_BYTES = 256


class DriverError(RuntimeError):
    """No GPU that the driver lets this process see; the message says why."""


@dataclass(frozen=True)
class Gpu:
    """A GPU by its number in this process (CUDA_VISIBLE_DEVICES counts)."""

    number: int
    name: str
    capability: tuple[int, int]


def visible_gpu(library: str = LIBRARY) -> Gpu:
    """
    PyTorch's current GPU if that is loaded and has one, or the first one.

    Makes no context and imports nothing. Raises DriverError.
    """
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        raise DriverError("no CUDA device: there is no NVIDIA driver") from None
    _require(driver.cuInit(0))
    number = _current_in_torch()
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(NAME_BYTES)
    _require(driver.cuDeviceGet(ctypes.byref(device), number))
    _require(driver.cuDeviceGetName(name, NAME_BYTES, device))
    for value, attribute in (
        (major, COMPUTE_CAPABILITY_MAJOR),
        (minor, COMPUTE_CAPABILITY_MINOR),
    ):
        _require(driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
    return Gpu(number, name.value.decode(), (major.value, minor.value))


def _require(status: int) -> None:
    if status != 0:
        raise DriverError(f"no CUDA device: the driver gives error {status}")


def _current_in_torch() -> int:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return torch.cuda.current_device()
