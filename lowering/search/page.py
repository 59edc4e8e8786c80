"""What is on the page of a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cleave.dialects.wording import counted, duration
from cleave.lowering.report_page.cost_table import cost_table
from cleave.lowering.report_page.lines import closing_lines
from cleave.lowering.report_page.page import Page, Row, Table
from cleave.lowering.search.lines import result_lines
from cleave.lowering.search.report import SearchReport, TrialReport


def search_page(report: SearchReport, pictures: Mapping[str, str]) -> Page:
    """All that was found, tried and left out."""
    left_out = sorted(report.pruned.items(), key=lambda each: -each[1])
    return Page(
        report.graph,
        [*result_lines(report), *closing_lines(report.notes, report.seconds)],
        pictures,
        [
            cost_table(report),
            Table(
                "Plans that were tried",
                ["#", "graph", "schedule", "predicted", "measured", "fate"],
                [*_trials(report)],
                numbers=["#", "predicted", "measured"],
            ),
            Table(
                "Schedules left out, by rule",
                ["rule", "schedules"],
                [Row([rule, f"{number:,}"]) for rule, number in left_out],
                numbers=["schedules"],
            ),
        ],
    )


def _trials(report: SearchReport) -> Iterator[Row]:
    for trial in report.trials:
        measured = trial.measured_ms
        is_chosen = trial.number == report.chosen_number
        yield Row(
            [
                str(trial.number),
                "\n".join(_graph_lines(trial)),
                "\n".join(trial.schedules),
                duration(trial.predicted_ms) if trial.predicted_ms else "",
                duration(measured) if measured is not None else "",
                report.fate(trial),
            ],
            "chosen" if is_chosen else "out" if trial.reason else "",
        )


def _graph_lines(trial: TrialReport) -> Iterator[str]:
    yield f"@{trial.graph}"
    if len(trial.schedules) > 1:
        yield counted(len(trial.schedules), "kernel")
    if trial.is_unfused:
        yield "unfused"
