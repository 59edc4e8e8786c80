"""The predicted time of each kernel, resource by resource, as a table of a page."""

from __future__ import annotations

from cleave.dialects.wording import duration
from cleave.lowering.report_page.cost_line import grid_text
from cleave.lowering.report_page.page import Row, Table
from cleave.lowering.search.report import SearchReport


def cost_table(report: SearchReport) -> Table:
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
