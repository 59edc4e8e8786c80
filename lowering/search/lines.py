"""The report of a search for people: lines, each under a word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cleave.dialects.wording import counted, duration, share
from cleave.lowering.report_page.check_line import check_line
from cleave.lowering.report_page.kernel_line import kernel_line
from cleave.lowering.report_page.lines import (
    Line,
    closing_lines,
    opening_lines,
    under,
)
from cleave.lowering.search.report import SearchReport

SHOWN = 5
"""How many reasons for which schedules were left out are shown."""


def search_lines(report: SearchReport) -> Iterator[Line]:
    """All that there is to say."""
    yield from result_lines(report)
    yield from under("rejected", _rejected(report))
    pruned = sorted(report.pruned.items(), key=lambda each: -each[1])
    left_out = [f"{counted(n, 'schedule')}: {rule}" for rule, n in pruned[:SHOWN]]
    if rest := pruned[SHOWN:]:
        left_out.append(
            f"{sum(n for _, n in rest):,} for {counted(len(rest), 'more reason')}"
        )
    yield from under("left out", left_out)
    yield from closing_lines(report.notes, report.seconds)


def result_lines(report: SearchReport) -> Iterator[Line]:
    """What was chosen, and how fast it is."""
    yield from opening_lines(report)
    built = sum(trial.measured_ms is not None for trial in report.trials)
    tried = counted(len(report.trials), "plan")
    if built:
        tried += f", {built} measured"
    yield (
        "searched",
        f"{counted(report.candidates, 'candidate')}, "
        f"{counted(report.evaluated, 'schedule')}, {tried}",
    )
    chosen = report.trials[report.chosen_number]
    yield from under("chosen", [f"@{chosen.graph}", *report.chosen])
    yield from under("kernel", map(kernel_line, report.kernels))
    yield from under("fault", report.faults)
    checked = check_line(
        report.checked, report.checked_sizes, report.max_error, report.allowed_error
    )
    yield "checked", checked
    yield from _times(report)


def _rejected(report: SearchReport) -> Iterable[str]:
    """Each reason once, with the graphs of the plans that it goes for."""
    graphs: defaultdict[str, list[str]] = defaultdict(list)
    for trial in report.trials:
        if trial.reason:
            graphs[trial.reason].append(f"@{trial.graph}")
    for reason, names in sorted(graphs.items(), key=lambda each: -len(each[1])):
        of = ", ".join(dict.fromkeys(names))
        yield f"{counted(len(names), 'plan')} ({of}): {reason}"


def _times(report: SearchReport) -> Iterator[Line]:
    if report.predicted_ms is not None:
        yield "predicted", duration(report.predicted_ms)
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
        time, how = (measured, "") if measured else (report.predicted_ms, " predicted")
        part = f", {share(report.floor_ms / time)} of it{how}" if time else ""
        yield "floor", f"{duration(report.floor_ms)}{part}"
