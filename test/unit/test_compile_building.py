"""What becomes of a generated module: legal, with faults, or not runnable at all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleave.lowering.built_plan import BuiltKernel, BuiltPlan
from cleave.lowering.compilation import building
from cleave.lowering.compilation.building import BuildError, build_module
from cleave.lowering.compilation.folder import write_texts
from cleave.lowering.compile_workers import CompileJob, CompileOutcome
from cleave.lowering.hardware import load_hardware
from cleave.lowering.kernel_report import KernelReport
from cleave.lowering.plan import Plan
from cleave.lowering.search.folder import copy_files

H200 = load_hardware("h200")

LITERAL: dict[str, Any] = {
    "name": "double",
    "args": [{"name": "x", "shape": [64, 8], "dtype": "float16"}],
    "results": [{"name": "y", "shape": [64, 8], "dtype": "float16"}],
    "temporaries": [],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["x", "y"],
            "pass_configs": {},
            "requires": ["tma"],
        }
    ],
    "sizes": {},
}
LEGAL = KernelReport(
    name="kernel_0",
    arch="sm_90a",
    threads=384,
    registers=168,
    raised_registers=240,
    spill_store_bytes=0,
    spill_load_bytes=0,
    stack_bytes=0,
    static_smem_bytes=1024,
    dynamic_smem_bytes=163840,
    serialized=(),
    notes=(),
    divergent=(),
    instructions={"tma": 2},
    instruction_source="cuda",
)
WITHOUT_TMA = replace(LEGAL, instructions={"wgmma": 1})
SPILLING = replace(LEGAL, spill_store_bytes=8, spill_load_bytes=8)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[KernelReport | str]:
    """What compilation comes to: the report of the kernel, or why it fails."""
    outcome: list[KernelReport | str] = []

    def compile_all(jobs: list[CompileJob]) -> list[CompileOutcome]:
        (job,) = jobs
        (result,) = outcome
        assert job.module.read_text() == "source"
        if isinstance(result, str):
            return [CompileOutcome(job, None, result, 0.0)]
        kernel = BuiltKernel("kernel_0", job.folder / "kernel_0.so", (result,), 0, 0)
        plan = BuiltPlan(job.folder, Plan.parse(LITERAL), job.arch, {}, (kernel,))
        return [CompileOutcome(job, plan, None, 0.0)]

    monkeypatch.setattr(building, "compile_all", compile_all)
    monkeypatch.setattr(building, "find_nvcc", lambda: Path("nvcc"))
    return outcome


def test_a_legal_kernel(compiled: list[KernelReport | str], tmp_path: Path) -> None:
    compiled.append(LEGAL)
    built = build_module("source", H200, tmp_path / "build")
    assert built.faults == []
    assert built.kernels == [LEGAL.literal()]
    assert built.built is not None


@pytest.mark.parametrize(
    ("report", "fault", "only_lacks"),
    [
        (WITHOUT_TMA, "kernel_0: tma is required, used: wgmma", True),
        (SPILLING, "kernel_0: registers spill: 8 bytes stored", False),
        (
            replace(LEGAL, serialized=("(C7510) serialized",)),
            "kernel_0: wgmma is serialized: (C7510) serialized",
            False,
        ),
    ],
)
def test_a_kernel_with_a_fault(
    report: KernelReport,
    fault: str,
    only_lacks: bool,
    compiled: list[KernelReport | str],
    tmp_path: Path,
) -> None:
    compiled.append(report)
    built = build_module("source", H200, tmp_path / "build")
    assert built.faults[0].startswith(fault)
    assert built.only_lacks == only_lacks


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            replace(SPILLING, dynamic_smem_bytes=240000),
            "^kernel_0: SMEM of 241024 bytes, a threadblock has 232448$",
        ),
        (replace(LEGAL, threads=2048), "^kernel_0: 2048 threads, a threadblock"),
        ("compilation took more than 120 s", "^compilation took more than 120 s$"),
    ],
)
def test_what_cannot_run(
    result: KernelReport | str,
    message: str,
    compiled: list[KernelReport | str],
    tmp_path: Path,
) -> None:
    compiled.append(result)
    with pytest.raises(BuildError, match=message):
        build_module("source", H200, tmp_path / "build")


def test_a_folder_has_the_files_of_one_compilation(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    build = tmp_path / "build"
    build.mkdir()
    (build / "kernel_0.cu").write_text("cuda")
    write_texts(folder, {"input": "a", "insert-casts": "b", "more": "c"}, "first")
    copy_files(build, folder)
    (folder / "01_notes.txt").write_text("kept")
    write_texts(folder, {"input": "d"}, "second")
    names = {path.name: path.read_text() for path in folder.iterdir()}
    assert names == {
        "00_input.mlir": "d",
        "module.py": "second",
        "01_notes.txt": "kept",
    }
