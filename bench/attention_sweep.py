"""
Attention in every combination of the sweep, checked on a GPU; one JSON file.

    python -m bench.attention_sweep --out bench/results/attention_sweep.json

One kernel for each element type, mask and pair of head dims serves all lengths and
numbers of heads; a second one is built for sizes that are bound, which take turns. Each
case is run on inputs of several families and judged by the rule of the numerical gate.
Without a GPU the kernels are built, and no case is checked.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.attention_cases import AttentionCase, AttentionKernel, cases
from bench.attention_check import (
    RESULTS,
    Checked,
    check,
    families_of,
    inputs_of,
    program_of,
)
from bench.machine import machine
from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.compilation.pipeline import NoProgramError
from cleave.lowering.compile_workers import CompileJob, CompileOutcome, compile_all
from cleave.lowering.gate.rule import Judgement
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.lowering.runtime import CompiledGraph, load_compiled

if TYPE_CHECKING:
    import torch

RUNS = 2


@dataclass
class Built:
    """A kernel on its way: for all sizes, or for those of one case."""

    kernel: AttentionKernel
    cases: Sequence[tuple[int, AttentionCase]]
    is_bound: bool
    plan: BuiltPlan | None = None
    reasons: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return self.cases[0][1].name if self.is_bound else self.kernel.name

    @property
    def sizes(self) -> dict[str, int] | None:
        return self.cases[0][1].sizes if self.is_bound else None


@dataclass(frozen=True)
class DeviceRun:
    """A kernel on the GPU; results hold NaNs before a run, and no two runs differ."""

    compiled: CompiledGraph
    repeatable: list[bool] = field(default_factory=list[bool])

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        import torch

        first: list[torch.Tensor] = []
        for _ in range(RUNS):
            results = self._poisoned(inputs)
            self.compiled.poison_workspace(*inputs)
            self.compiled(*inputs, out=results)
            first = first or results
            pairs = zip(first, results, strict=True)
            same = all(_bits(a).equal(_bits(b)) for a, b in pairs)
            self.repeatable.append(same)
        torch.cuda.synchronize()
        return first

    def _poisoned(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        q, _, v, *_ = inputs
        o = torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device)
        lse = torch.empty((*q.shape[:3], 1), dtype=torch.float32, device=q.device)
        for tensor in (o, lse):
            _bits(tensor).fill_(0xFF)
        return [o, lse]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.reshape(-1).view(torch.uint8)


def kernels_of(listed: Iterable[AttentionCase]) -> list[Built]:
    """For each kernel of these cases one with open sizes, and one with bound ones."""
    grouped: dict[AttentionKernel, list[tuple[int, AttentionCase]]] = {}
    for number, case in enumerate(listed):
        grouped.setdefault(case.kernel, []).append((number, case))
    found: list[Built] = []
    for number, (kernel, own) in enumerate(grouped.items()):
        found.append(Built(kernel, own, is_bound=False))
        # A step that has no divisor in common with the number of a kernel's cases.
        found.append(Built(kernel, [own[5 * number % len(own)]], is_bound=True))
    return found


def build(
    kernels: Sequence[Built], folder: Path, hardware: Hardware, workers: int | None
) -> None:
    """Schedule and compile the kernels; what goes wrong is added to their reasons."""
    going: list[Built] = []
    jobs: list[CompileJob] = []
    for kernel in kernels:
        try:
            source = program_of(kernel.kernel, kernel.sizes).source(fast_math=False)
        except NoProgramError as error:
            kernel.reasons.append(str(error))
            continue
        path = folder / f"{kernel.name}.py"
        path.write_text(source, encoding="utf-8")
        going.append(kernel)
        jobs.append(CompileJob(kernel.name, path, hardware.arch, path.with_suffix("")))
    outcomes = compile_all(jobs, workers=workers, done=_tell_build)
    for kernel, outcome in zip(going, outcomes, strict=True):
        kernel.plan = outcome.built
        if outcome.built is None:
            kernel.reasons.append(outcome.reason or "not built")


def _tell_build(outcome: CompileOutcome) -> None:
    if outcome.built is None:
        print(f"{outcome.job.name}: {outcome.reason}", flush=True)


def checked_rows(
    kernel: Built, device: torch.device | None
) -> Iterator[dict[str, Any]]:
    """An entry of the JSON file for each case of a kernel."""
    compiled: CompiledGraph | None = None
    if kernel.plan is not None and device is not None:
        compiled = load_compiled(kernel.plan, device)
    for number, case in kernel.cases:
        reasons = list(kernel.reasons)
        found: list[Checked] = []
        if compiled is not None and device is not None:
            run = DeviceRun(compiled)
            names = families_of(case, number)
            for family, inputs in inputs_of(case, names, device, seed=number).items():
                found.append(check(case, run, family, inputs))
                reasons += found[-1].reasons
            if not all(run.repeatable):
                reasons.append("runs on equal inputs differ")
        yield {
            "case": case.name,
            "bound": kernel.is_bound,
            "heads": case.heads,
            "queries": case.queries,
            "keys": case.keys,
            "families": [checked.family for checked in found],
            **{name: _worst(found, i) for i, name in enumerate(RESULTS)},
            "ok": bool(found) and not reasons,
            "reasons": reasons,
        }


def _worst(found: Sequence[Checked], result: int) -> dict[str, float | None] | None:
    """The judgement of one result that comes closest to its bound, or exceeds it."""
    if not found:
        return None

    def closeness(judgement: Judgement) -> float:
        return judgement.error / judgement.allowed if judgement.allowed else 0.0

    worst = max((checked.judgements[result] for checked in found), key=closeness)
    errors = {
        "max_error": worst.error,
        "eager_error": worst.eager_error,
        "allowed": worst.allowed,
    }
    return {name: _rounded(value) for name, value in errors.items()}


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if isfinite(value) else None


def write(path: Path, head: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """A JSON object with a row a line, written in one step."""
    start = json.dumps(head, indent=1)[:-2]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(f'{start},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    partial.replace(path)


def _head(
    kernels: Sequence[Built],
    rows: Sequence[dict[str, Any]],
    seconds: tuple[float, float],
) -> dict[str, Any]:
    """What the JSON file says about the whole, `seconds` of building and checking."""
    hardware = load_hardware("h200")
    return {
        "machine": machine("bench.attention_sweep"),
        "cases": sum(len(kernel.cases) for kernel in kernels),
        "checked": len(rows),
        "right": sum(row["ok"] for row in rows),
        "build_seconds": round(seconds[0], 1),
        "check_seconds": round(seconds[1], 1),
        "kernels": [
            {
                "name": kernel.name,
                "bound": kernel.is_bound,
                "reasons": kernel.reasons,
                "legality": kernel.plan.legality(hardware) if kernel.plan else [],
            }
            for kernel in kernels
        ],
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file")
    parser.add_argument("--kernels", default="*", help="a pattern of kernel names")
    parser.add_argument("--workers", type=int, help="compilers at a time")
    options = parser.parse_args(arguments)
    import torch

    device = torch.device("cuda") if torch.cuda.is_available() else None
    listed = [c for c in cases() if fnmatch(c.kernel.name, f"*{options.kernels}*")]
    kernels = kernels_of(listed)
    start = time.monotonic()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        build(kernels, Path(folder), load_hardware("h200"), options.workers)
        built_seconds = time.monotonic() - start
        print(f"{len(kernels)} kernels built in {built_seconds:.0f} s", flush=True)
        for kernel in kernels:
            rows += checked_rows(kernel, device)
            wrong = [row for row in rows[-len(kernel.cases) :] if not row["ok"]]
            for row in wrong[:3] if device else ():
                print(f"{row['case']}: {'; '.join(row['reasons'])[:300]}", flush=True)
            # What is found is kept, also where the time ends before the cases do.
            seconds = (built_seconds, time.monotonic() - start - built_seconds)
            write(options.out, _head(kernels, rows, seconds), rows)
    right = sum(row["ok"] for row in rows)
    print(f"{right} of {len(rows)} cases are right: {options.out}")
    return 0 if right == len(rows) or device is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
