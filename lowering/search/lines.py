"""The report of a search for people: lines, each under a word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cleave.dialects.wording import counted, duration
from cleave.lowering.report_page.check_line import check_line
from cleave.lowering.report_page.kernel_line import kernel_line
from cleave.lowering.report_page.lines import (
    Line,
    closing_lines,
    opening_lines,
    under,
)
from cleave.lowering.report_page.time_lines import time_lines
from cleave.lowering.search.report import SearchReport, TrialReport

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
    yield from under("chosen", [_name(chosen), *report.chosen])
    yield from under("kernel", map(kernel_line, report.kernels))
    yield from under("fault", report.faults)
    checked = check_line(
        report.checked, report.checked_sizes, report.max_error, report.allowed_error
    )
    yield "checked", checked
    yield from time_lines(report)


def _rejected(report: SearchReport) -> Iterable[str]:
    """Each reason once, with the plans that it goes for and how fast those may be."""
    rejected: defaultdict[str, list[TrialReport]] = defaultdict(list)
    for trial in report.trials:
        if trial.reason:
            rejected[trial.reason].append(trial)
    for reason, trials in sorted(rejected.items(), key=lambda each: -len(each[1])):
        of = ", ".join(dict.fromkeys(map(_name, trials)))
        times = [t.predicted_ms for t in trials if t.predicted_ms is not None]
        if times:
            of += f"; predicted {'from ' if len(trials) > 1 else ''}"
            of += duration(min(times))
        yield f"{counted(len(trials), 'plan')} ({of}): {reason}"


def _name(trial: TrialReport) -> str:
    return f"@{trial.graph}" + (" with cuBLAS" if trial.calls_library else "")
