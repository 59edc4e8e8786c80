"""
The files of a compilation by search.

    00_input.mlir, 01_chosen-graphs.mlir, ...   the IR that the kernels come from
    module.py                                   the generated TileLang module
    kernel_0.cu, kernel_0.cubin, kernel_0.so    CUDA, machine code, and what launches it
    built.json                                  what `cleave.lowering.runtime` loads
    report.json, report.html                    what was found, tried and chosen
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cleave.lowering.compilation.building import MODULE
from cleave.lowering.compilation.folder import REPORT
from cleave.lowering.search.html import html
from cleave.lowering.search.report import SearchReport

STAGES = "[0-9][0-9]_*.mlir"
HTML = "report.html"


def write_folder(
    folder: Path, stages: Mapping[str, str], source: str, report: SearchReport
) -> None:
    """Write what is not there yet beside a build. Raises OSError."""
    for old in folder.glob(STAGES):
        old.unlink()
    for number, (name, text) in enumerate(stages.items()):
        (folder / f"{number:02}_{name}.mlir").write_text(text, encoding="utf-8")
    (folder / MODULE).write_text(source, encoding="utf-8")
    text = json.dumps(report.json(), indent=2) + "\n"
    (folder / REPORT).write_text(text, encoding="utf-8")
    page = html(report, stages, source)
    (folder / HTML).write_text(page, encoding="utf-8")
