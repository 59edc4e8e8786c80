"""What is on the page of a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cleave.dialects.wording import counted, duration
from cleave.lowering.report_page.cost_line import grid_text
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
            _costs(report),
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


def _costs(report: SearchReport) -> Table:
    """Each kernel of the chosen plan, and each resource as if no other took time."""
    resources = dict.fromkeys(
        name for cost in report.costs for name in cost["alone_ms"]
    )
    columns = ["predicted", *resources, "idle"]
    return Table(
        "Predicted time, and the time that each resource alone would take",
        ["kernel", "threadblocks", "bound by", *columns],
        [
            Row(
                [
                    cost["kernel"],
                    grid_text(cost["grid"]) if cost["grid"] else "",
                    cost["bound_by"],
                    duration(cost["predicted_ms"]),
                    *(duration(cost["alone_ms"].get(name, 0)) for name in resources),
                    duration(cost["uneven_ms"]),
                ]
            )
            for cost in report.costs
        ],
        numbers=columns,
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
