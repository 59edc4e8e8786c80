"""How far a search may go, and the clock that it is held to."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What ends a search that does not end by itself."""

    values: int = 20_000
    """Distinct values in one closure."""
    graphs: int = 2_000
    """Graphs that are read off."""
    seconds: float = 30.0
    """Of a core, for everything together."""

    @property
    def search_seconds(self) -> float:
        """The share of it that is not for writing down what was found."""
        return self.seconds * 2 / 3


class Clock:
    """
    Counts down from its creation the time that its thread has a core: a search finds
    the same on a machine that is busy.
    """

    def __init__(self, seconds: float) -> None:
        self._started = time.thread_time()
        self._seconds = seconds

    @property
    def elapsed(self) -> float:
        return time.thread_time() - self._started

    @property
    def expired(self) -> bool:
        return self.elapsed > self._seconds
