"""
A plan that was compiled: a folder with one shared library and one report a kernel.

`cleave.lowering.cuda.build` writes such a folder, in this process or another one, and
`cleave.lowering.runtime` loads it. The libraries run without TileLang's compiler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleave.lowering.hardware import Hardware
from cleave.lowering.kernel_report import KernelReport, legality
from cleave.lowering.plan import Plan, PlanError

MANIFEST = "built.json"
MODULE = "module.py"
"""The generated module, beside what was built of it."""


class BuiltPlanError(ValueError):
    """A folder that holds no complete built plan; the message starts with its path."""


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """
    One function of a generated module, compiled.

    `library` exports TileLang's host function, which checks its tensors and launches;
    `reports` has an entry for each `__global__` function in it. Times are wall clock.
    """

    function: str
    library: Path
    reports: tuple[KernelReport, ...]
    lower_seconds: float
    nvcc_seconds: float


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """A plan, what it was built for and with, and its kernels in launch order."""

    folder: Path
    plan: Plan
    arch: str
    versions: Mapping[str, str]
    kernels: tuple[BuiltKernel, ...]

    def legality(self, hardware: Hardware) -> list[str]:
        """Why the plan is rejected, each reason after its kernel's name."""
        return [
            f"{report.name}: {reason}"
            for built, kernel in zip(self.kernels, self.plan.kernels, strict=True)
            for report in built.reports
            for reason in legality(report, hardware, kernel.requires)
        ]

    def save(self) -> None:
        """Write the manifest, last of all: a folder without one is not complete."""
        manifest = {
            "plan": self.plan.literal(),
            "arch": self.arch,
            "versions": dict(self.versions),
            "kernels": [
                {
                    "function": kernel.function,
                    "library": kernel.library.name,
                    "reports": [report.literal() for report in kernel.reports],
                    "lower_seconds": kernel.lower_seconds,
                    "nvcc_seconds": kernel.nvcc_seconds,
                }
                for kernel in self.kernels
            ],
        }
        partial = self.folder / f"{MANIFEST}.partial"
        partial.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.folder / MANIFEST)


def load_built(folder: Path) -> BuiltPlan:
    """The built plan in a folder. Raises BuiltPlanError if it is not whole."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except OSError as error:
        raise BuiltPlanError(f"{folder}: {MANIFEST}: {error.strerror}") from None
    try:
        manifest: dict[str, Any] = json.loads(text)
        built = BuiltPlan(
            folder,
            Plan.parse(manifest["plan"]),
            manifest["arch"],
            manifest["versions"],
            tuple(
                BuiltKernel(
                    kernel["function"],
                    folder / kernel["library"],
                    tuple(KernelReport.parse(r) for r in kernel["reports"]),
                    kernel["lower_seconds"],
                    kernel["nvcc_seconds"],
                )
                for kernel in manifest["kernels"]
            ),
        )
    except (KeyError, TypeError, json.JSONDecodeError, PlanError) as error:
        raise BuiltPlanError(f"{folder}: {MANIFEST} is damaged: {error}") from None
    for kernel in built.kernels:
        if not kernel.library.is_file():
            raise BuiltPlanError(f"{folder}: {kernel.library.name} is missing")
    return built
