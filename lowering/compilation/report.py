"""What a compilation chose, checked and measured, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import pipeline
from cleave.lowering.hardware import Hardware


@dataclass(frozen=True)
class Rejection:
    """A configuration that was not taken, and why, in one line."""

    configuration: Configuration
    reason: str


@dataclass(frozen=True)
class Report:
    """
    A compilation.

    `sizes` has None for a dim that is only known at run time. `kernels` are the reports
    of `cleave.lowering.kernel_report`, or less of each where there is no nvcc; `faults`
    says why they are slower than planned. `device` is None without a GPU.
    `measured_ms` is None where `not_measured` says why. `notes` say what else there is
    to know, such as why nothing was searched.
    """

    graph: str
    sizes: Mapping[str, int | None]
    hardware: Hardware
    device: str | None
    configuration: Configuration
    threads: int
    form: str
    why: Sequence[str]
    kernels: Sequence[Mapping[str, Any]]
    faults: Sequence[str]
    check: NumericCheck
    measured_ms: float | None
    not_measured: str | None
    rejected: Sequence[Rejection]
    versions: Mapping[str, str]
    seconds: Mapping[str, float]
    notes: Sequence[str] = ()

    @property
    def choice(self) -> str:
        """What was chosen, in a few words."""
        return str(self.configuration)

    def json(self) -> dict[str, Any]:
        """The report as JSON takes it; `cleave compile --json` adds the texts."""
        configuration = self.configuration
        check = self.check
        return {
            "graph": self.graph,
            "sizes": dict(self.sizes),
            "chosen": {
                **_choice(configuration),
                "threads": self.threads,
                "form": self.form,
                "pipeline": pipeline(configuration),
                "why": list(self.why),
            },
            "checked": check.method,
            "max_error": check.max_error,
            "allowed_error": check.max_allowed,
            "check": {
                "sizes": dict(check.sizes),
                "inputs": str(check.drawing),
                "errors": list(check.errors),
                "allowed": list(check.allowed),
            },
            "predicted_ms": None,  # the rule has no cost model
            "measured_ms": self.measured_ms,
            "not_measured": self.not_measured,
            "hardware": {"name": self.hardware.name, "arch": self.hardware.arch},
            "device": self.device,
            "kernels": [_plain(kernel) for kernel in self.kernels],
            "faults": list(self.faults),
            "rejected": [
                {**_choice(each.configuration), "reason": each.reason}
                for each in self.rejected
            ],
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "seconds": {name: round(s, 3) for name, s in self.seconds.items()},
        }


def _choice(configuration: Configuration) -> dict[str, Any]:
    return {
        "tile": dict(configuration.tile),
        "reduce": dict(configuration.reduce),
        "threads": configuration.threads,
        "stages": configuration.stages,
        "swizzle": configuration.swizzle,
    }


def _plain(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """A kernel's report with lists, as it is read back from JSON."""
    return json.loads(json.dumps(kernel))
