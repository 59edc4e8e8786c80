"""The CUDA tools below TileLang: where they are, and how a cubin is made with them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

DISASSEMBLERS = ("cuobjdump", "nvdisasm")


class ToolchainError(RuntimeError):
    """A tool that is missing, or that refused its input; the message is one line."""


class ToolLostError(ToolchainError):
    """A tool that was killed, crashed or had no memory, rather than refused."""


LOST = re.compile(r"died due to signal|out of memory|bad_alloc", re.I)
"""What nvcc says if it, or a part of it, came to no end."""


def tilelang_is_installed() -> bool:
    """Whether there is TileLang, which is not imported: that takes 1-2 s."""
    return importlib.util.find_spec("tilelang") is not None


def find_nvcc() -> Path | None:
    """
    The CUDA compiler: in CUDA_HOME or CUDA_PATH, on PATH, from a wheel, or in the usual
    place. None if there is none.
    """
    return _find("nvcc", ("nvidia-cuda-nvcc",))


def find_disassembler() -> Path | None:
    """
    cuobjdump or nvdisasm, looked for where nvcc is and in Triton's wheel. None if there
    is neither; what a kernel uses is then read from its CUDA text.
    """
    for tool in DISASSEMBLERS:
        if found := _find(tool, (f"nvidia-cuda-{tool}", "triton")):
            return found
    return None


def require_nvcc() -> Path:
    """The CUDA compiler. Raises ToolchainError, saying where it was looked for."""
    if nvcc := find_nvcc():
        return nvcc
    raise ToolchainError(
        "no nvcc: not in CUDA_HOME, not on PATH, no wheel nvidia-cuda-nvcc"
    )


@cache
def nvcc_version(nvcc: Path) -> str:
    """The release that a compiler reports ("13.0.88")."""
    output = _run([str(nvcc), "--version"], "nvcc --version").stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", output)
    return found.group(1) if found else "unknown"


def compile_cubin(
    source: Path, arch: str, options: Sequence[str], nvcc: Path
) -> tuple[bytes, str]:
    """
    Compile a CUDA file to machine code for `arch` ("sm_90a") beside it.

    Returns the cubin and what ptxas said about it (`-v`: registers, spills, SMEM).
    Raises ToolchainError with the first error that nvcc gave.
    """
    cubin = source.with_suffix(".cubin")
    command = [
        *(str(nvcc), "--cubin", "-O3", "-lineinfo", "-w", "-std=c++20"),
        *(f"-arch={arch}", "-Xptxas=-v", *options),
        *("-o", str(cubin), str(source)),
    ]
    done = _run(command, f"nvcc cannot compile {source.name}")
    return cubin.read_bytes(), done.stdout + done.stderr


def disassemble(cubin: Path, disassembler: Path) -> str:
    """The SASS of a cubin. Raises ToolchainError if the tool refuses it."""
    options = ["--dump-sass"] if disassembler.name == "cuobjdump" else []
    command = [str(disassembler), *options, str(cubin)]
    return _run(command, f"{disassembler.name} cannot read {cubin.name}").stdout


def _find(tool: str, wheels: Sequence[str]) -> Path | None:
    for candidate in _candidates(tool, wheels):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _candidates(tool: str, wheels: Sequence[str]) -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home, "bin", tool)
    if on_path := shutil.which(tool):
        yield Path(on_path)
    for wheel in wheels:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        yield from (Path(str(f.locate())) for f in files if f.name == tool)
    yield Path("/usr/local/cuda/bin", tool)


def _run(command: Sequence[str], failure: str) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolchainError(f"{failure}: {error.strerror}") from error
    if done.returncode != 0:
        output = (done.stderr + done.stdout).splitlines()
        errors = [line for line in output if re.search(r"error|fatal", line, re.I)]
        reason = next(iter(errors or output), f"exit code {done.returncode}")
        is_lost = done.returncode < 0 or any(map(LOST.search, output))
        kind = ToolLostError if is_lost else ToolchainError
        raise kind(f"{failure}: {reason.strip()}")
    return done
