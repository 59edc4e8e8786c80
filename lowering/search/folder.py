"""
The files of a compilation by search.

    00_input.mlir, 01_chosen-graphs.mlir, ...   the IR that the kernels come from
    module.py                                   the generated TileLang module
    kernel_0.cu, kernel_0.cubin, kernel_0.so    CUDA, machine code, and what launches it
    built.json                                  what `cleave.lowering.runtime` loads
    report.json                                 what was found, tried and chosen
    report.html                                 the same of a search, for people
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cleave.lowering.built_plan import MODULE
from cleave.lowering.compilation.folder import REPORT, WRITTEN
from cleave.lowering.search.effort import RULE
from cleave.lowering.search.html import html
from cleave.lowering.search.report import SearchReport

HTML = "report.html"


@contextmanager
def naming(folder: Path) -> Generator[None]:
    """Name this folder in errors, as in `out: No space left on device`."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def clear_folder(folder: Path) -> None:
    """Make a folder, without what an earlier compilation wrote there; or OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in (*WRITTEN, HTML):
        for old in folder.glob(pattern):
            old.unlink()


def copy_files(source: Path, folder: Path, but: str = "") -> None:
    """Copy the files of a folder, but for one of this name. Raises OSError."""
    with naming(folder):
        for file in source.iterdir():
            if file.name != but:
                shutil.copy(file, folder)


def write_folder(
    folder: Path, stages: Mapping[str, str], source: str, report: SearchReport
) -> None:
    """Write what is not there yet beside a build. Raises OSError."""
    with naming(folder):
        _write(folder, stages, source, report)


def _write(
    folder: Path, stages: Mapping[str, str], source: str, report: SearchReport
) -> None:
    for number, (name, text) in enumerate(stages.items()):
        (folder / f"{number:02}_{name}.mlir").write_text(text, encoding="utf-8")
    (folder / MODULE).write_text(source, encoding="utf-8")
    text = json.dumps(report.json(), indent=2) + "\n"
    (folder / REPORT).write_text(text, encoding="utf-8")
    if report.effort != RULE:
        page = html(report, stages, source)
        (folder / HTML).write_text(page, encoding="utf-8")
