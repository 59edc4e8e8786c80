"""When a compilation may be kept, and when one that was kept is enough."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleave.lowering.compilation import place as place_module
from cleave.lowering.compilation.compiled import NotKeptError
from cleave.lowering.compilation.device import Device, NoDeviceError
from cleave.lowering.compilation.place import Place, this_place
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search.cached_compilation import compile_cached, key_of
from cleave.lowering.search.report import SearchReport, TrialReport
from cleave.tools.errors import message

H200 = load_hardware("h200")
DEVICE = Device(0, "NVIDIA H200", H200)
NONE = Place(H200, None, "no GPU", {})
GPU = Place(H200, DEVICE, None, {})

STAGES = {"input": "graph", "select-schedules": "itgraph.plan @g {\n}\n"}


def record(
    checked: str, measured_ms: float | None, size: int | None = 4
) -> dict[str, Any]:
    trial = TrialReport(0, "g_1", ["tile M=64"], 0.5, measured_ms, 0.25, None, False)
    report = SearchReport(
        graph="g",
        sizes={"M": size},
        effort="quick",
        hardware={"name": "NVIDIA H200", "arch": "sm_90a"},
        device=None,
        chosen=["tile M=64"],
        chosen_graphs=["algebra.graph"],
        chosen_number=0,
        kernels=[],
        faults=[],
        checked=checked,
        checked_sizes={"M": 2},
        max_error=0.25,
        allowed_error=0.5,
        predicted_ms=0.5,
        launch_ms=0.125,
        costs=[],
        measured_ms=measured_ms,
        not_measured=None if measured_ms else "PyTorch has no GPU",
        unfused_ms=None,
        floor_ms=0.25,
        candidates=2,
        evaluated=1234,
        pruned={},
        trials=[trial],
        notes=[],
        versions={"cleave": "1"},
        seconds={},
    )
    return {
        "report": report.json(),
        "source": "module",
        "stages": STAGES,
        "pictures": {},
    }


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """`made(record, place)` compiles it three times; how often was it made?"""
    monkeypatch.setenv("CLEAVE_CACHE_DIR", str(tmp_path / "cache"))

    def times(record: dict[str, Any], place: Place, **options: Any) -> int:
        calls: list[Path] = []

        def make(folder: Path) -> dict[str, Any]:
            calls.append(folder)
            return json.loads(json.dumps(record))

        key = key_of("graph", place) if options.pop("use_cache", True) else None
        required = options.pop("gpu_is_required", False)
        for _ in range(3):
            compile_cached(
                make,
                key,
                place,
                gpu_is_required=required,
                out_dir=None,
                progress=str,
                **options,
            )
        return len(calls)

    return times


@pytest.mark.parametrize(
    ("place", "record_", "calls"),
    [
        (NONE, record("numpy-tiles", None), 1),
        (GPU, record("device", 0.5), 1),
        (GPU, record("device", None, size=None), 1),
        # What a GPU that is there has not run, or not timed, it may the next time.
        (GPU, record("numpy-tiles", None), 3),
        (GPU, record("numpy-tiles", None, size=None), 3),
        (GPU, record("device", None), 3),
    ],
)
def test_only_what_could_not_be_better_is_kept(
    made: Callable[..., int], place: Place, record_: dict[str, Any], calls: int
) -> None:
    assert made(record_, place) == calls


def test_what_was_lost_is_not_kept(made: Callable[..., int]) -> None:
    """The next time nobody may kill the process."""
    lost = record("numpy-tiles", None)
    trial = {**lost["report"]["trials"][0], "reason": "died", "is_lost": True}
    lost["report"]["trials"].append(trial)
    assert made(lost, NONE) == 3


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """`compiled(record)` is the report of it, from a cache in `tmp_path`."""
    monkeypatch.setenv("CLEAVE_CACHE_DIR", str(tmp_path))

    def report(record: dict[str, Any]) -> SearchReport:
        return compile_cached(
            lambda folder: json.loads(json.dumps(record)),
            key_of("graph", NONE),
            NONE,
            gpu_is_required=False,
            out_dir=None,
            progress=str,
        ).report

    return report


def test_the_report_says_why_it_is_not_kept(compiled: Callable[..., Any]) -> None:
    lost = record("numpy-tiles", None)
    lost["report"]["trials"][0]["is_lost"] = True
    assert compiled(lost).notes == [
        "not kept in the cache, for it may be another the next time: "
        "1 plan died or ran out of time or memory"
    ]


def test_the_report_says_if_the_cache_was_damaged(
    compiled: Callable[..., Any], tmp_path: Path
) -> None:
    sound = record("numpy-tiles", None)
    assert compiled(sound).notes == []
    (kept,) = tmp_path.glob("*/compiled.json")
    kept.write_text(kept.read_text().replace('"floor_ms": 0.25', '"floor_ms": 0.5'))
    again = compiled(sound)
    assert again.notes == [
        "made again, for the cache is damaged: compiled.json is missing or has changed"
    ]
    assert again.floor_ms == 0.25
    (note,) = compiled(sound).notes
    assert note.startswith("from the cache")


def test_a_result_of_the_cache_says_what_it_took_now(
    compiled: Callable[..., Any], tmp_path: Path
) -> None:
    slow = record("numpy-tiles", None)
    slow["report"]["seconds"] = {"search": 1.5, "build": 10.75}
    assert compiled(slow).seconds == {"search": 1.5, "build": 10.75}
    kept = compiled(slow)
    assert list(kept.seconds) == ["cache"]
    assert kept.seconds["cache"] < 5
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert kept.notes == [f"from the cache, made in 12.2 s: {folder}"]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_full_disk_takes_all_files_or_none(
    is_new: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was compiled is not lost, and files of others stay."""
    out = tmp_path / "out"
    if not is_new:
        out.mkdir()
        for name in ("notes.txt", "module.py"):
            (out / name).write_text("old")
    copied: list[Path] = []

    def full(file: Path, folder: Path) -> None:
        (folder / file.name).write_text("")
        copied.append(folder / file.name)
        if len(copied) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copy", full)
    with pytest.raises(NotKeptError) as caught:
        compile_cached(
            lambda folder: record("numpy-tiles", None),
            None,
            NONE,
            gpu_is_required=False,
            out_dir=out,
            progress=str,
        )
    assert len(copied) == 2
    assert message(caught.value) == (
        f"error: {out}: No space left on device; of what was compiled, no file is there"
    )
    left = [path.name for path in out.iterdir()] if out.exists() else None
    assert left == (None if is_new else ["notes.txt"])
    compiled = caught.value.compiled
    assert compiled.report.graph == "g"
    assert (compiled.folder / "report.html").exists()


def test_what_was_made_without_a_gpu_is_not_for_one(made: Callable[..., int]) -> None:
    assert made(record("numpy-tiles", None), NONE) == 1
    assert made(record("device", 0.5), GPU) == 1


def test_without_the_cache_all_is_made(made: Callable[..., int]) -> None:
    assert made(record("device", 0.5), GPU) == 1
    assert made(record("device", 0.5), GPU, use_cache=False) == 3


def test_a_gpu_that_is_required_has_run_the_kernel(made: Callable[..., int]) -> None:
    assert made(record("device", None, size=None), GPU, gpu_is_required=True) == 1
    message = "^a GPU is required: PyTorch has no GPU$"
    with pytest.raises(CompilationError, match=message):
        made(record("numpy-tiles", None), NONE, gpu_is_required=True)


def test_a_gpu_without_nvcc_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_module, "visible_device", lambda: DEVICE)
    monkeypatch.setattr(place_module, "find_nvcc", lambda: None)
    place = this_place()
    assert place.device is DEVICE
    assert place.cannot_run == "there is a GPU, but no nvcc to build a kernel with"
    assert "nvcc" not in place.versions

    def no_device() -> Device:
        raise NoDeviceError("no driver")

    monkeypatch.setattr(place_module, "visible_device", no_device)
    assert (this_place().device, this_place().cannot_run) == (None, "no driver")
