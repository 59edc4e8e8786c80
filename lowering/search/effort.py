"""How hard to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Effort:
    """What a search spends."""

    split: Literal["none", "inputs"]
    """Whether reduced dims of inputs are split over threadblocks (Split-K); if not,
    they are all the same where the best plan without leaves half of the GPU idle."""
    graphs: int
    """Equal graphs, besides the one that is given, that are divided into kernels and
    scheduled: 0.1-0.3 s each."""
    cuts: int
    """Cuts into several kernels that are kept for each graph."""
    plans: int
    """Plans that are built, checked and measured."""
    search_seconds: float
    """Of a core, after which no more graphs are found or scheduled."""
    repeats: int
    """Samples of each plan's time."""


EFFORTS: Mapping[str, Effort] = {
    "quick": Effort("none", 24, 2, 3, 15.0, 20),
    "normal": Effort("inputs", 32, 4, 8, 20.0, 40),
    "full": Effort("inputs", 128, 8, 32, 60.0, 60),
}
DEFAULT_EFFORT = "normal"
RULE = "rule"
"""No search, but the configuration of a simple rule."""


@dataclass(frozen=True)
class Ablation:
    """Parts of the search that can be left out, to measure what they are worth."""

    superoptimize: bool = True
    iterate: bool = True
    layouts: bool = True
