"""The report of `cleave compile` for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cleave.lowering.compilation.report import RuleReport
from cleave.lowering.search.report import SearchReport
from cleave.tools.check_line import check_line
from cleave.tools.kernel_line import kernel_line
from cleave.tools.search_report import search_lines

WORD = 10
"""Columns of the words on the left."""
SHOWN = 3
"""Rejected configurations that are shown."""


def print_report(report: SearchReport, out_dir: Path | None) -> None:
    """Print it line by line, with the words on the left in bold on a terminal."""
    console = Console(highlight=False, soft_wrap=True)
    by_rule = isinstance(report, RuleReport)
    lines = [*(rule_lines(report) if by_rule else search_lines(report))]
    if out_dir is not None:
        lines.append(("files", str(out_dir)))
    for word, text in lines:
        console.print(Text.assemble((f"{word:{WORD}}", "bold"), text))


def rule_lines(report: RuleReport) -> Iterator[tuple[str, str]]:
    """What there is to say, each under a word; more lines on it have none."""
    sizes = ", ".join(f"{n} = {s or 'dynamic'}" for n, s in report.sizes.items())
    yield "graph", f"@{report.graph}" + (f" with {sizes}" if sizes else "")
    yield "GPU", report.device or f"none here; compiled for {report.hardware['name']}"
    yield "chosen", f"{report.configuration}, {report.form}"
    for reason in report.why:
        yield "", reason
    for number, rejection in enumerate(report.rejected[-SHOWN:]):
        word = "" if number else "rejected"
        yield word, f"{rejection.schedules[0]}: {rejection.reason}"
    if (more := len(report.rejected) - SHOWN) > 0:
        yield "", f"and {more} before"
    for kernel in report.kernels:
        yield "kernel", kernel_line(kernel)
    for fault in report.faults:
        yield "fault", fault
    check = report.check
    checked = check_line(
        check.method, check.sizes, check.max_error, check.max_allowed, check.drawing
    )
    yield "checked", checked
    if report.measured_ms is not None:
        yield "measured", f"{report.measured_ms:.4f} ms"
    else:
        yield "measured", f"no: {report.not_measured}"
    for note in report.notes:
        yield "note", note
    yield "took", ", ".join(f"{n} {s:.1f} s" for n, s in report.seconds.items())
