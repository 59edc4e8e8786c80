"""The report of `cleave compile` for people."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from cleave.lowering.compilation.lines import rule_lines
from cleave.lowering.compilation.report import RuleReport
from cleave.lowering.search.lines import search_lines
from cleave.lowering.search.report import SearchReport

WORD = 10
"""Columns of the words on the left."""


def print_report(report: SearchReport, out_dir: Path | None) -> None:
    """Print it line by line, with the words on the left in bold on a terminal."""
    console = Console(highlight=False, soft_wrap=True)
    by_rule = isinstance(report, RuleReport)
    lines = [*(rule_lines(report) if by_rule else search_lines(report))]
    if out_dir is not None:
        lines.append(("files", str(out_dir)))
    for word, text in lines:
        console.print(Text.assemble((f"{word:{WORD}}", "bold"), text))
