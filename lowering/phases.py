"""How long the phases of a compilation take."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Generator[None]:
    """Add the time of what is done inside to that of a phase, in seconds."""
    start = time.perf_counter()
    try:
        yield
    finally:
        spent = time.perf_counter() - start
        seconds[phase] = seconds.get(phase, 0.0) + spent
