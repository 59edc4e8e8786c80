"""Lines of a report, as they stand on a terminal and on top of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from cleave.lowering.search.report import SearchReport

SHORT = 0.1
"""Seconds below which they are worded as milliseconds."""

Line: TypeAlias = tuple[str, str]
"""A word, and what there is to say under it."""


def under(word: str, texts: Iterable[str]) -> Iterator[Line]:
    """Several lines under one word, which only the first of them has."""
    for number, text in enumerate(texts):
        yield "" if number else word, text


def opening_lines(report: SearchReport) -> Iterator[Line]:
    """The graph, its sizes, and the GPU."""
    sizes = ", ".join(f"{n} = {s or 'dynamic'}" for n, s in report.sizes.items())
    yield "graph", f"@{report.graph}" + (f" with {sizes}" if sizes else "")
    yield "GPU", report.device or f"none here; compiled for {report.hardware['name']}"


def closing_lines(notes: Sequence[str], seconds: Mapping[str, float]) -> Iterator[Line]:
    """The notes, and how long the phases of a compilation took."""
    yield from under("note", notes)
    yield "took", ", ".join(f"{name} {_spent(s)}" for name, s in seconds.items())


def _spent(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= SHORT else f"{seconds * 1e3:.0f} ms"
