"""The report of a compilation by the rule for people: lines, each under a word."""

from __future__ import annotations

from collections.abc import Iterator

from cleave.lowering.compilation.report import RuleReport
from cleave.lowering.report_page.check_line import check_line
from cleave.lowering.report_page.kernel_line import kernel_line
from cleave.lowering.report_page.lines import (
    Line,
    closing_lines,
    opening_lines,
    under,
)
from cleave.lowering.report_page.time_lines import time_lines

SHOWN = 3
"""Rejected configurations that are shown."""


def rule_lines(report: RuleReport) -> Iterator[Line]:
    """All that there is to say, with the last of the rejected configurations."""
    yield from chosen_lines(report)
    rejected = [f"{each.schedules[0]}: {each.reason}" for each in report.rejected]
    shown = rejected[-SHOWN:]
    if (more := len(rejected) - SHOWN) > 0:
        shown.append(f"and {more} before")
    yield from under("rejected", shown)
    yield from result_lines(report)


def chosen_lines(report: RuleReport) -> Iterator[Line]:
    """What was chosen for which graph and GPU, and why."""
    yield from opening_lines(report)
    chosen = f"{report.configuration}, {report.form}"
    yield from under("chosen", [chosen, *report.why])


def result_lines(report: RuleReport) -> Iterator[Line]:
    """What became of it."""
    yield from under("kernel", map(kernel_line, report.kernels))
    yield from under("fault", report.faults)
    check = report.check
    checked = check_line(
        check.method, check.sizes, check.max_error, check.max_allowed, check.drawing
    )
    yield "checked", checked
    yield from time_lines(report)
    yield from closing_lines(report.notes, report.seconds)
