"""A benchmarked module: what is known of it, and its entry in a JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.shapes import Row
from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.check import ResultCheck
from cleave.lowering.hardware import Hardware
from cleave.lowering.timing import Timing


@dataclass
class Entry:
    """A module on its way: each step adds what it found, or why it is the last one."""

    module: Path
    row: Row | None = None
    built: BuiltPlan | None = None
    reasons: list[str] = field(default_factory=list[str])
    checks: list[ResultCheck] = field(default_factory=list[ResultCheck])
    timing: Timing | None = None
    peers: Mapping[str, Timing] = field(default_factory=dict[str, Timing])
    peers_missing: Mapping[str, str] = field(default_factory=dict[str, str])
    predicted_ms: float | None = None

    @property
    def name(self) -> str:
        return self.module.stem

    @property
    def best_peer(self) -> str | None:
        """The name of the fastest peer that ran beside it."""
        medians = {name: timing.median_ms for name, timing in self.peers.items()}
        return min(medians, key=medians.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        """The fastest peer's time over ours: above 1 is a win."""
        if self.timing is None or self.best_peer is None:
            return None
        return self.peers[self.best_peer].median_ms / self.timing.median_ms

    def literal(self, hardware: Hardware) -> dict[str, Any]:
        """The entry of the JSON file; what was not reached is null or empty."""
        ours = self.timing.median_ms if self.timing else None
        floor = self.row.floor_seconds(hardware) * 1e3 if self.row else None
        return {
            "module": self.name,
            "row": self.row.title if self.row else None,
            "subgraph": self.row.subgraph if self.row else None,
            "sizes": dict(self.row.sizes) if self.row else {},
            "dtype": self.row.dtype if self.row else None,
            "reasons": self.reasons,
            "predicted_ms": self.predicted_ms,
            "max_error": max((check.error for check in self.checks), default=None),
            "ours_ms": ours,
            "spread": self.timing.spread if self.timing else None,
            "floor_ms": floor,
            "fraction_of_floor": floor / ours if floor and ours else None,
            "peers_ms": {name: t.median_ms for name, t in self.peers.items()},
            "peers_missing": dict(self.peers_missing),
            "best_peer": self.best_peer,
            "ratio": self.ratio,
            "kernels": self._kernels(),
        }

    def line(self) -> str:
        """The entry in one line, for a terminal."""
        if self.timing is None:
            why = "; ".join(self.reasons) or "not timed"
            return f"{self.name:32} {why}"
        line = f"{self.name:32} {self.timing.median_ms * 1e3:9.1f} us"
        if self.best_peer is not None and self.ratio is not None:
            peer_us = self.peers[self.best_peer].median_ms * 1e3
            line += f" {peer_us:9.1f} us {self.ratio:6.3f}x {self.best_peer}"
        return line

    def _kernels(self) -> list[dict[str, Any]]:
        if self.built is None:
            return []
        return [
            report.literal() | {"pass_configs": dict(kernel.pass_configs)}
            for built, kernel in zip(
                self.built.kernels, self.built.plan.kernels, strict=True
            )
            for report in built.reports
        ]
