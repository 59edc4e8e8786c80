"""
The files of a compilation.

    00_input.mlir, 01_insert-casts.mlir, ...    the IR after each pass
    module.py                                   the generated TileLang module
    kernel_0.cu, kernel_0.cubin, kernel_0.so    CUDA, machine code, and what launches it
    built.json                                  what `cleave.lowering.runtime` loads
    report.json, report.html                    what was chosen, checked and measured

Without nvcc there is only the first of each kernel's files, and no built.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cleave.lowering.built_plan import MANIFEST, MODULE

REPORT = "report.json"
HTML = "report.html"
WRITTEN = ("[0-9][0-9]_*.mlir", "kernel_*.*", MANIFEST, MODULE, REPORT, HTML)
"""The names of all these files."""


def clear_folder(folder: Path) -> None:
    """Make a folder, without what an earlier compilation wrote there; or OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in WRITTEN:
        for old in folder.glob(pattern):
            old.unlink()


def write_texts(folder: Path, stages: Mapping[str, str], source: str) -> None:
    """Write IR and generated module into a folder of their own. Raises OSError."""
    clear_folder(folder)
    write_stages(folder, stages, source)


def write_stages(folder: Path, stages: Mapping[str, str], source: str) -> None:
    """Write the IR of every stage and the generated module. Raises OSError."""
    for number, (name, text) in enumerate(stages.items()):
        (folder / f"{number:02}_{name}.mlir").write_text(text, encoding="utf-8")
    (folder / MODULE).write_text(source, encoding="utf-8")
