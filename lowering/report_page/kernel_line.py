"""A kernel in one line of a report."""

from collections.abc import Mapping
from typing import Any


def kernel_line(kernel: Mapping[str, Any]) -> str:
    """Name, threads, registers, SMEM and instructions, as far as they are known."""
    threads = f"{kernel['name']}: {kernel['threads']} threads"
    if "registers" not in kernel:
        smem = f"{kernel['dynamic_smem_bytes'] / 1024:.0f} KiB of SMEM"
        return f"{threads}, {smem}; CUDA text only, for there is no nvcc"
    registers = f"{kernel['registers']} registers"
    if raised := kernel["raised_registers"]:
        registers += f", raised to {raised} in consumers"
    smem = (kernel["static_smem_bytes"] + kernel["dynamic_smem_bytes"]) / 1024
    used = [family for family, count in kernel["instructions"].items() if count]
    families = ", ".join(used) or "no tensor cores"
    return f"{threads}, {registers}, {smem:.0f} KiB of SMEM; {families}"
