"""What a search found, tried and chose, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cleave.dialects.wording import share


@dataclass(frozen=True)
class TrialReport:
    """One plan: what it is, what became of it. Times in milliseconds."""

    number: int
    graph: str
    """The name of the equal graph, or of the sequence of pieces, that it computes."""
    schedules: Sequence[str]
    predicted_ms: float | None
    measured_ms: float | None
    max_error: float | None
    reason: str | None
    """Why it was rejected; None if it was not."""
    is_unfused: bool
    calls_library: bool = False
    """Whether a part of it is a vendor's (cuBLAS)."""
    is_lost: bool = False
    """Whether it was rejected for what may not happen again, such as a process that was
    killed."""


@dataclass(frozen=True)
class SearchReport:
    """
    A compilation by search; everything in it is what JSON takes.

    `checked` is "device" or "numpy-tiles". `measured_ms` is None where `not_measured`
    says why. `floor_ms` is what inputs, results and matrix products alone would take.

    `predicted_ms` is the sum of `launch_ms` and of the times in `costs`, which has what
    the plan launches, in order: the `kernel` by its name, and what `KernelCost.literal`
    gives. It is empty where nothing is predicted.
    """

    graph: str
    sizes: Mapping[str, int | None]
    effort: str
    hardware: Mapping[str, str]
    device: str | None
    chosen: Sequence[str]
    chosen_graphs: Sequence[str]
    chosen_number: int
    kernels: Sequence[Mapping[str, Any]]
    faults: Sequence[str]
    checked: str
    checked_sizes: Mapping[str, int]
    max_error: float
    allowed_error: float
    predicted_ms: float | None
    launch_ms: float | None
    costs: Sequence[Mapping[str, Any]]
    measured_ms: float | None
    not_measured: str | None
    unfused_ms: float | None
    floor_ms: float | None
    candidates: int
    evaluated: int
    pruned: Mapping[str, int]
    trials: Sequence[TrialReport]
    notes: Sequence[str]
    versions: Mapping[str, str]
    seconds: Mapping[str, float]

    @property
    def chose_unfused(self) -> bool:
        """Whether nothing was faster than one kernel an operator group."""
        return self.trials[self.chosen_number].is_unfused

    def fate(self, trial: TrialReport) -> str:
        """What became of a plan, in a few words."""
        if trial.number == self.chosen_number:
            return "chosen"
        if trial.reason is not None:
            return trial.reason
        if trial.measured_ms is not None and self.measured_ms:
            return f"{share(trial.measured_ms / self.measured_ms - 1)} slower"
        return "not tried: no faster by the model"

    @property
    def choice(self) -> str:
        """What was chosen, in a few words."""
        return "; ".join(self.chosen)

    def json(self) -> dict[str, Any]:
        """The report as JSON takes it; `cleave compile --json` adds the texts."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> SearchReport:
        """The report that `json` gave. Raises TypeError for other data."""
        fields: dict[str, Any] = dict(data)
        fields["trials"] = [TrialReport(**trial) for trial in data["trials"]]
        return cls(**fields)
