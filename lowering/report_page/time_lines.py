"""How long a graph takes: predicted, with what binds it, measured, and at least."""

from __future__ import annotations

from collections.abc import Iterator

from cleave.dialects.wording import duration, several
from cleave.lowering.report_page.cost_line import cost_line
from cleave.lowering.report_page.lines import Line, under
from cleave.lowering.search.report import SearchReport

MOST_FLOORS = 1000
"""Times the floor beyond which it does not matter how often."""


def time_lines(report: SearchReport) -> Iterator[Line]:
    """All times of a report, as far as there are any."""
    if report.predicted_ms is not None:
        launches = ""
        if report.launch_ms is not None:
            launches = f", {duration(report.launch_ms)} of it for launches"
        yield "predicted", f"{duration(report.predicted_ms)}{launches}"
        yield from under("bound", map(cost_line, report.costs))
    measured = report.measured_ms
    if measured is None:
        yield "measured", f"no: {report.not_measured}"
    else:
        beside = ""
        if report.chose_unfused:
            beside = ": the unfused plan, and nothing is faster"
        elif report.unfused_ms:
            beside = f", unfused {duration(report.unfused_ms)}"
        yield "measured", f"{duration(measured)}{beside}"
    if report.floor_ms is not None:
        yield "floor", f"{duration(report.floor_ms)}{_above_floor(report)}"


def _above_floor(report: SearchReport) -> str:
    time, how = report.measured_ms, "measured"
    if time is None:
        time, how = report.predicted_ms, "predicted"
    if not report.floor_ms or not time:
        return ""
    ratio = time / report.floor_ms
    times = several(ratio) if ratio < MOST_FLOORS else f"over {MOST_FLOORS:,}"
    return f"; {how} is {times} times that"
