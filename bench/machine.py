"""What a result must say about where and how it came about."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cleave
from cleave.lowering.toolchain import find_nvcc, nvcc_version

PACKAGES = ("torch", "tilelang", "triton", "fa3_fwd", "numpy")


def machine(module: str = "bench.foundations") -> dict[str, Any]:
    """
    The GPU (None without one), the host, the versions, the time, and the command, which
    runs `module`.
    """
    nvcc = find_nvcc()
    versions = {name: _version(name) for name in PACKAGES}
    versions |= {
        "cleave": cleave.__version__,
        "python": platform.python_version(),
        "nvcc": nvcc_version(nvcc) if nvcc else None,
    }
    return {
        "gpu": _gpu(),
        "host": platform.machine(),
        "versions": versions,
        "command": shlex.join(["python", "-m", module, *sys.argv[1:]]),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_json(path: Path, data: object) -> None:
    """Write a result in one step, so that a file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpu() -> dict[str, Any] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    device = torch.cuda.current_device()
    return {
        "name": torch.cuda.get_device_name(device),
        "driver": _driver(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def _driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.splitlines()[0].strip()
