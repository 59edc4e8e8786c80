"""What this machine has for Cleave: packages, GPUs and the CUDA compiler."""

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

import cleave

# What Cleave depends on always, and to make kernels. Each is imported by the name that
# it is installed by.
REQUIRED = (
    "filelock",
    "jinja2",
    "ml_dtypes",
    "networkx",
    "numpy",
    "platformdirs",
    "rich",
    "sympy",
    "xdsl",
)
FOR_KERNELS = ("tilelang", "torch")

OLDEST_CAPABILITY = (8, 0)
"""Of a GPU: `sm_80`, the first that has bf16 and asynchronous copies."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str | None
    """None if it is not installed."""
    problem: str | None
    """Why it cannot be imported although it is installed."""

    @property
    def works(self) -> bool:
        return self.version is not None and self.problem is None


@dataclass(frozen=True)
class Gpu:
    name: str
    capability: tuple[int, int]
    memory_gib: float
    usable: bool
    """Whether PyTorch sees it, and not just the driver."""


@dataclass(frozen=True)
class Nvcc:
    path: str
    version: str


@dataclass(frozen=True)
class Part:
    """A part of Cleave, and what it lacks here; if nothing, it works."""

    name: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    cleave: str
    python: str
    system: str
    packages: tuple[Package, ...]
    gpus: tuple[Gpu, ...]
    nvcc: Nvcc | None

    def parts(self) -> tuple[Part, ...]:
        """The parts of Cleave; each needs what the one before it needs, and more."""
        lacking = [package for package in self.packages if not package.works]
        core = tuple(p.name for p in lacking if p.name in REQUIRED)
        lower = core + tuple(p.name for p in lacking if p.name in FOR_KERNELS)
        build = lower if self.nvcc else (*lower, "nvcc")
        fit = [gpu for gpu in self.gpus if gpu.capability >= OLDEST_CAPABILITY]
        if not fit:
            run = (*build, "an NVIDIA GPU of compute capability 8.0 or more")
        elif not any(gpu.usable for gpu in fit):
            run = (*build, "a PyTorch that can use the GPU")
        else:
            run = build
        return (
            Part("passes, search and execution on the CPU", core),
            Part("lowering to CUDA source", lower),
            Part("building cubins", build),
            Part("running and timing kernels", run),
        )


def survey() -> Survey:
    """Look around. Imports everything that is installed, which takes seconds."""
    packages = tuple(find_package(name) for name in REQUIRED + FOR_KERNELS)
    torch_works = any(p.works for p in packages if p.name == "torch")
    return Survey(
        cleave=cleave.__version__,
        python=platform.python_version(),
        system=platform.platform(),
        packages=packages,
        gpus=(torch_gpus() if torch_works else ()) or driver_gpus(),
        nvcc=find_nvcc(),
    )


def find_package(name: str) -> Package:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Package(name, None, None)
    try:
        import_module(name)
    except Exception as error:  # whatever a native library says when it does not load
        return Package(name, version, f"{type(error).__name__}: {error}")
    return Package(name, version, None)


def torch_gpus() -> tuple[Gpu, ...]:
    """The GPUs that PyTorch can use."""
    from torch import cuda

    return tuple(
        Gpu(
            name=cuda.get_device_name(device),
            capability=cuda.get_device_capability(device),
            memory_gib=cuda.mem_get_info(device)[1] / 2**30,
            usable=True,
        )
        for device in range(cuda.device_count() if cuda.is_available() else 0)
    )


def driver_gpus() -> tuple[Gpu, ...]:
    """The GPUs that the driver knows, for when PyTorch cannot say."""
    output = _output_of(
        "nvidia-smi",
        "--query-gpu=compute_cap,memory.total,name",
        "--format=csv,noheader,nounits",
    )
    gpus: list[Gpu] = []
    for line in (output or "").splitlines():
        capability, mib, name = line.split(", ", maxsplit=2)
        major, minor = capability.split(".")
        gpus.append(Gpu(name, (int(major), int(minor)), int(mib) / 2**10, usable=False))
    return tuple(gpus)


def find_nvcc() -> Nvcc | None:
    """
    The CUDA compiler, where TileLang looks for it: below `CUDA_HOME` or `CUDA_PATH`, on
    the `PATH`, in the wheel `nvidia-cuda-nvcc`, and in its usual place.
    """
    if home := os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH"):
        candidates = [Path(home, "bin", "nvcc")]
    else:
        candidates = [Path(found)] if (found := shutil.which("nvcc")) else []
        candidates += _nvcc_of_wheel()
        candidates.append(Path("/usr/local/cuda/bin/nvcc"))
    for path in candidates:
        output = _output_of(str(path), "--version")
        if output and (version := re.search(r"V(\d+\.\d+\.\d+)", output)):
            return Nvcc(str(path), version[1])
    return None


def _nvcc_of_wheel() -> list[Path]:
    try:
        files = metadata.files("nvidia-cuda-nvcc") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name == "nvcc"]


def _output_of(*command: str) -> str | None:
    """What a command prints, or None if it is missing or fails."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
