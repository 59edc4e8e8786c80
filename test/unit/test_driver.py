"""What the driver says about a GPU, without one: the calls and their errors."""

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cleave.lowering.compilation.device import NoDeviceError, visible_device
from cleave.lowering.driver import DriverError, Gpu, visible_gpu


class Driver:
    """A driver that has two GPUs of this compute capability."""

    def __init__(self, capability: tuple[int, int] = (9, 0), status: int = 0):
        self.capability = capability
        self.status = status

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = 100 + number
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = b"GPU %d" % (device.value - 100)
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = self.capability[attribute - 75]
        return 0


def use(monkeypatch: pytest.MonkeyPatch, found: Driver) -> None:
    def load(library: str) -> Driver:
        assert library == "libcuda.so.1"
        return found

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_the_first_gpu_or_that_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Driver())
    assert visible_gpu() == Gpu(0, "GPU 0", (9, 0))
    cuda = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert visible_gpu() == Gpu(1, "GPU 1", (9, 0))
    device = visible_device()
    assert (device.number, device.hardware.name) == (1, "NVIDIA H200")


def test_machines_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DriverError, match=r"^no CUDA device: there is no NVIDIA dri"):
        visible_gpu("libcuda_of_nobody.so")
    use(monkeypatch, Driver(status=100))
    with pytest.raises(NoDeviceError, match=r"^no CUDA device: the driver gives error"):
        visible_device()
    use(monkeypatch, Driver(capability=(7, 5)))
    with pytest.raises(NoDeviceError, match=r"for compute capability 7\.5$"):
        visible_device()
