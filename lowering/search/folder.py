"""
The files of a compilation.

    00_input.mlir, 01_symbolize.mlir, ...       the IR that the kernels come from
    module.py                                   the generated TileLang module
    kernel_0.cu, kernel_0.cubin, kernel_0.so    CUDA, machine code, and what launches it
    built.json                                  what `cleave.lowering.runtime` loads
    report.json, report.html                    what was found, tried and chosen
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cleave.lowering.compilation.folder import HTML, REPORT, write_stages
from cleave.lowering.compilation.page import page_of
from cleave.lowering.report_page.page import html
from cleave.lowering.search.report import SearchReport


@contextmanager
def naming(folder: Path) -> Generator[None]:
    """Name this folder in errors, as in `out: No space left on device`."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def copy_files(source: Path, folder: Path, but: Collection[str] = ()) -> None:
    """Copy the files of a folder, but for those of these names. Raises OSError."""
    with naming(folder):
        for file in source.iterdir():
            if file.name not in but:
                shutil.copy(file, folder)


def write_folder(
    folder: Path,
    stages: Mapping[str, str],
    source: str,
    report: SearchReport,
    pictures: Mapping[str, str],
) -> None:
    """Write what is not there yet beside a build. Raises OSError."""
    with naming(folder):
        write_stages(folder, stages, source)
        text = json.dumps(report.json(), indent=2) + "\n"
        (folder / REPORT).write_text(text, encoding="utf-8")
        page = html(page_of(report, pictures), stages, source)
        (folder / HTML).write_text(page, encoding="utf-8")
