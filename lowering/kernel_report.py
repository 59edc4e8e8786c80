"""
What the compiler says about a kernel, and whether that makes it a legal candidate.

ptxas reports registers, stack, spills and serialized wgmma; TileLang knows the dynamic
SMEM, which ptxas never sees; the disassembly, or the CUDA text where there is no
disassembler, shows which instruction families a kernel really uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cleave.lowering.hardware import Hardware
from cleave.lowering.plan import Requirement

InstructionSource = Literal["sass", "cuda"]

# How each instruction family is spelled in SASS (sm_80, sm_90a) and in TileLang's CUDA.
FAMILIES: Mapping[str, Mapping[InstructionSource, str]] = {
    "wgmma": {"sass": r"\bHGMMA\b", "cuda": r"\btl::wgmma_(?:ss|rs)\b"},
    "mma_sync": {"sass": r"\bHMMA\b", "cuda": r"\btl::mma_sync\b"},
    "tma": {
        "sass": r"\b(?:UTMALDG|UBLKCP)\b",
        "cuda": r"\btl::tma_load\w*",
    },
    "tma_store": {"sass": r"\bUTMASTG\b", "cuda": r"\btl::tma_store(?=[(<])"},
    "cp_async": {"sass": r"\bLDGSTS\b", "cuda": r"\btl::cp_async_gs\w*"},
    "stmatrix": {"sass": r"\bSTSM\b", "cuda": r"\btl::ptx_stmatrix\w*"},
    "exp2": {
        "sass": r"\bMUFU\.EX2\b",
        "cuda": r"\b(?:cleave_exp2|exp2f|__expf|expf)\(",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """
    One `__global__` function as compiled; `name` is that of the function of the
    generated module that makes it (TileLang calls most of them the same).

    `registers` is a thread's share at launch; consumers of a warp-specialized kernel
    raise theirs to `raised_registers`. `instructions` counts each family's instructions
    in `instruction_source`. `notes` are ptxas' other performance warnings, `divergent`
    branches with barriers for more threads than take them. SMEM, stack and spills are
    in bytes.
    """

    name: str
    arch: str
    threads: int
    registers: int
    raised_registers: int | None
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_smem_bytes: int
    dynamic_smem_bytes: int
    serialized: tuple[str, ...]
    notes: tuple[str, ...]
    divergent: tuple[str, ...]
    instructions: Mapping[str, int]
    instruction_source: InstructionSource

    @property
    def smem_bytes(self) -> int:
        """All SMEM that one threadblock takes."""
        return self.static_smem_bytes + self.dynamic_smem_bytes

    def literal(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self)

    @classmethod
    def parse(cls, literal: Mapping[str, Any]) -> KernelReport:
        """The report that `literal` came from. Raises TypeError for other data."""
        fields = dict(literal)
        fields["serialized"] = tuple(literal["serialized"])
        fields["notes"] = tuple(literal["notes"])
        fields["divergent"] = tuple(literal["divergent"])
        return cls(**fields)


def legality(
    report: KernelReport, hardware: Hardware, requires: Iterable[Requirement] = ()
) -> list[str]:
    """
    Why a compiled kernel is rejected; an empty list means that it is legal.

    Spills and a stack frame cost local-memory traffic, serialized wgmma its overlap,
    and a missing required instruction means that TileLang fell back to something else.
    The compiler takes none of these for an error, so each has to be looked for.
    """
    reasons: list[str] = []
    if report.spill_store_bytes or report.spill_load_bytes:
        reasons.append(
            f"registers spill: {report.spill_store_bytes} bytes stored, "
            f"{report.spill_load_bytes} loaded, at {report.registers} registers"
        )
    elif report.stack_bytes:
        reasons.append(f"stack frame of {report.stack_bytes} bytes")
    reasons += [f"wgmma is serialized: {line}" for line in report.serialized]
    reasons += [f"threads wait in vain in `{branch}`" for branch in report.divergent]
    if report.smem_bytes > hardware.smem_bytes_per_block:
        reasons.append(
            f"SMEM of {report.smem_bytes} bytes, "
            f"a threadblock has {hardware.smem_bytes_per_block}"
        )
    if report.threads > hardware.threads_per_block:
        reasons.append(
            f"{report.threads} threads, a threadblock has {hardware.threads_per_block}"
        )
    taken = report.registers * report.threads
    if taken > hardware.registers_per_multiprocessor:
        reasons.append(
            f"{taken} registers a threadblock, "
            f"a multiprocessor has {hardware.registers_per_multiprocessor}"
        )
    for family in requires:
        if not report.instructions.get(family):
            used = [name for name, count in report.instructions.items() if count]
            reasons.append(
                f"{family} is required, used: {', '.join(used) or 'no known family'}"
            )
    return reasons


@dataclass(slots=True)
class PtxasFigures:
    """What `ptxas -v` prints about one kernel; the fields are those of KernelReport."""

    registers: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    static_smem_bytes: int = 0
    serialized: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def name_of(function: str, symbol: str, symbols: Collection[str]) -> str:
    """What a `__global__` function is called, one of these that a function makes."""
    return function if len(symbols) == 1 else f"{function} ({symbol})"


def parse_ptxas(log: str) -> dict[str, PtxasFigures]:
    """
    What `ptxas -v` says, by kernel name.

    A function that is called and not inlined adds its spills to the kernel before it.
    """
    entry = re.compile(r"Compiling entry function '(\w+)'")
    kernels = {name: PtxasFigures() for name in entry.findall(log)}
    current: PtxasFigures | None = None
    for line in log.splitlines():
        if found := entry.search(line):
            current = kernels[found.group(1)]
        elif found := re.search(r"\(C\d{4}\) .*", line):
            _add_note(kernels, current, found.group())
        elif current is None:
            continue
        elif found := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill",
            line,
        ):
            stack, stores, loads = map(int, found.groups())
            current.stack_bytes = max(current.stack_bytes, stack)
            current.spill_store_bytes += stores
            current.spill_load_bytes += loads
        elif found := re.search(r"Used (\d+) registers", line):
            current.registers = int(found.group(1))
            if smem := re.search(r"(\d+) bytes smem", line):
                current.static_smem_bytes = int(smem.group(1))
            if total := re.search(r"(\d+) bytes cumulative stack size", line):
                current.stack_bytes = max(current.stack_bytes, int(total.group(1)))
    return kernels


def _add_note(
    kernels: Mapping[str, PtxasFigures], current: PtxasFigures | None, text: str
) -> None:
    """
    File a ptxas warning under the kernel that it names, which may come only later. One
    that names none belongs to the kernel at hand, or to all.
    """
    named = re.search(r"function '(\w+)'", text)
    if named and named.group(1) in kernels:
        owners = [kernels[named.group(1)]]
    else:
        owners = [current] if current is not None else list(kernels.values())
    for owner in owners:
        if "serialized" in text:
            owner.serialized = (*owner.serialized, text)
        else:
            owner.notes = (*owner.notes, text)


def count_instructions(text: str, source: InstructionSource) -> dict[str, int]:
    """How often each instruction family stands in one kernel's text."""
    return {
        family: len(re.findall(spelling[source], text))
        for family, spelling in FAMILIES.items()
    }


def split_cuda(text: str) -> dict[str, str]:
    """The body of each kernel in TileLang's CUDA text, by name."""
    head = re.compile(
        r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\([^;{]*\{"
    )
    starts = list(head.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {s.group(1): text[s.start() : e] for s, e in zip(starts, ends, strict=True)}


def split_sass(text: str) -> dict[str, str]:
    """The instructions of each kernel in cuobjdump's or nvdisasm's output, by name."""
    head = re.compile(r"^(?:\s*Function : |\.section\s+\.text\.)(\w+)", re.M)
    starts = list(head.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {s.group(1): text[s.start() : e] for s, e in zip(starts, ends, strict=True)}


def raised_registers(cuda: str) -> int | None:
    """The most registers that a warpgroup asks for by setmaxnreg, if any does."""
    asked = re.findall(r"\bwarpgroup_reg_alloc<(\d+)>", cuda)
    return max(map(int, asked), default=None)
