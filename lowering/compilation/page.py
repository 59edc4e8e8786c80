"""What is on the page of a compilation, with a search or without."""

from __future__ import annotations

from collections.abc import Mapping

from cleave.lowering.compilation.lines import chosen_lines, result_lines
from cleave.lowering.compilation.report import RuleReport
from cleave.lowering.report_page.cost_table import cost_table
from cleave.lowering.report_page.page import Page, Row, Table
from cleave.lowering.search.page import search_page
from cleave.lowering.search.report import SearchReport


def page_of(report: SearchReport, pictures: Mapping[str, str]) -> Page:
    """The report with pictures of its graphs."""
    if not isinstance(report, RuleReport):
        return search_page(report, pictures)
    rejected = [
        Row([each.schedules[0], each.reason or ""], "out") for each in report.rejected
    ]
    return Page(
        report.graph,
        [*chosen_lines(report), *result_lines(report)],
        pictures,
        [
            cost_table(report),
            Table(
                "Configurations that were rejected",
                ["configuration", "reason"],
                rejected,
            ),
        ],
    )
