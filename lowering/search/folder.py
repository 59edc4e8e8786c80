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

from cleave.lowering.built_plan import MODULE
from cleave.lowering.compilation.folder import REPORT, WRITTEN
from cleave.lowering.search.html import html
from cleave.lowering.search.report import SearchReport

HTML = "report.html"


def clear_folder(folder: Path) -> None:
    """Make a folder, without what an earlier compilation wrote there; or OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in (*WRITTEN, HTML):
        for old in folder.glob(pattern):
            old.unlink()


def write_folder(
    folder: Path, stages: Mapping[str, str], source: str, report: SearchReport
) -> None:
    """Write what is not there yet beside a build. Raises OSError."""
    for number, (name, text) in enumerate(stages.items()):
        (folder / f"{number:02}_{name}.mlir").write_text(text, encoding="utf-8")
    (folder / MODULE).write_text(source, encoding="utf-8")
    text = json.dumps(report.json(), indent=2) + "\n"
    (folder / REPORT).write_text(text, encoding="utf-8")
    page = html(report, stages, source)
    (folder / HTML).write_text(page, encoding="utf-8")
