"""Kernels as shared libraries: TileLang's host code, loaded without its compiler."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


class NotRunnableError(RuntimeError):
    """No device, one of another architecture, or no TileLang to run a plan with."""


def load_library(library: Path) -> Callable[..., object]:
    """
    The host function of a kernel's shared library: it checks tensors, encodes their TMA
    descriptors and launches on the current stream of their device.
    """
    _load_tilelang_runtime()
    tvm_ffi: Any = import_module("tvm_ffi")
    return tvm_ffi.load_module(str(library.resolve()))["main"]


def _load_tilelang_runtime() -> None:
    """
    Load what a library needs at run time: two of TileLang's shared objects, in 0.05 s.
    Importing the compiler with them would take 1-2 s.
    """
    if "tilelang" in sys.modules:
        return
    spec = importlib.util.find_spec("tilelang")
    if spec is None or not spec.submodule_search_locations:
        raise NotRunnableError("TileLang is not installed")
    folder = Path(next(iter(spec.submodule_search_locations)), "lib")
    # As TileLang loads them: PyTorch's libraries first, the runtime's symbols global.
    import_module("torch")
    import_module("tvm_ffi")
    try:
        ctypes.CDLL(str(folder / "libtvm_runtime.so"), ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(folder / "libtilelang.so"), os.RTLD_LAZY)
    except OSError as error:
        raise NotRunnableError(f"TileLang's runtime does not load: {error}") from error
