"""The cache of compilations: whole entries or none, whatever happens to the disk."""

import errno
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.search import cache
from cleave.lowering.search.cache import (
    DIGESTS,
    RECORD,
    DamagedEntryError,
    Entry,
    cache_folder,
    cache_key,
)
from cleave.lowering.search.report import SearchReport, TrialReport

KEPT = {"source": "module", "stages": {"input": "graph"}}


def some_report() -> SearchReport:
    trial = TrialReport(0, "g_1", ["tile M=64 <fast>"], 0.5, None, 0.25, None, False)
    out = TrialReport(
        1, "g_2", ["tile M=32"], 0.75, None, None, "wrong <numbers>", True
    )
    return SearchReport(
        graph="g",
        sizes={"M": 4},
        effort="quick",
        hardware={"name": "NVIDIA H200", "arch": "sm_90a"},
        device=None,
        chosen=["tile M=64 <fast>"],
        chosen_graphs=["algebra.graph"],
        chosen_number=0,
        kernels=[],
        faults=[],
        checked="numpy-tiles",
        checked_sizes={"M": 2},
        max_error=0.25,
        allowed_error=0.5,
        predicted_ms=0.5,
        launch_ms=0.125,
        costs=[],
        measured_ms=None,
        not_measured="no GPU",
        unfused_ms=None,
        floor_ms=0.25,
        candidates=2,
        evaluated=1234,
        pruned={"SMEM": 12},
        trials=[trial, out],
        notes=[],
        versions={"cleave": "1"},
        seconds={"search": 1.0},
    )


@pytest.fixture
def record() -> dict[str, Any]:
    return {"report": some_report().json(), **KEPT}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a build, and a file of somebody else."""
    folder = tmp_path / "build"
    folder.mkdir()
    for name in ("built.json", "kernel_0.cubin", "notes.txt"):
        (folder / name).write_text(name)

    def load_built(folder: Path) -> BuiltPlan:
        assert (folder / "built.json").exists()
        return BuiltPlan(folder, None, "sm_90a", {}, ())  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(cache, "load_built", load_built)
    return folder


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    return Entry(cache_key({"graph": "g"}), tmp_path / "cache")


def test_what_is_stored_is_loaded(
    entry: Entry, build: Path, record: dict[str, Any]
) -> None:
    assert entry.load() is None
    assert entry.store(record, build) is None
    loaded = entry.load()
    assert loaded is not None
    assert loaded["report"] == record["report"]
    names = {path.name for path in entry.folder.iterdir()}
    assert names == {"built.json", "kernel_0.cubin", RECORD, DIGESTS}
    assert [path.name for path in entry.root.iterdir()] == [entry.folder.name]


def _truncate(folder: Path) -> None:
    (folder / "kernel_0.cubin").write_text("")


def _lose(folder: Path) -> None:
    (folder / "kernel_0.cubin").unlink()


def _garble(folder: Path) -> None:
    (folder / RECORD).write_text("{")


def _edit(folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    record["report"]["max_error"] = 0.125
    (folder / RECORD).write_text(json.dumps(record))


def _lose_digests(folder: Path) -> None:
    (folder / DIGESTS).unlink()


def _empty_digests(folder: Path) -> None:
    (folder / DIGESTS).write_text("{}")


def _add(folder: Path) -> None:
    (folder / "kernel_1.so").write_text("")


def _replace(folder: Path) -> None:
    (folder / RECORD).write_text("[1]")


def _is_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def _is_a_link(folder: Path) -> None:
    elsewhere = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(elsewhere)
    _truncate(elsewhere)


CUBIN, TEXT, HASHES = (
    f"{name} is missing or has changed" for name in ("kernel_0.cubin", RECORD, DIGESTS)
)
DAMAGES = [
    (_truncate, CUBIN),
    (_lose, CUBIN),
    (_garble, TEXT),
    (_edit, TEXT),
    (_replace, TEXT),
    (_lose_digests, HASHES),
    (_empty_digests, HASHES),
    (_add, "kernel_1.so is missing or has changed"),
    (_is_a_file, HASHES),
    (_is_a_link, CUBIN),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES)
def test_a_damaged_entry_is_removed_and_made_again(
    damage: Callable[[Path], None],
    reason: str,
    entry: Entry,
    build: Path,
    record: dict[str, Any],
) -> None:
    entry.store(record, build)
    damage(entry.folder)
    with pytest.raises(DamagedEntryError, match=f"^{reason}$"):
        entry.load()
    assert entry.load() is None
    assert not entry.folder.exists()
    assert entry.store(record, build) is None
    assert entry.load() is not None


def test_a_full_disk_leaves_nothing_behind(
    entry: Entry,
    build: Path,
    record: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copy", full)
    assert (
        entry.store(record, build) == "not kept in the cache: No space left on device"
    )
    assert list(entry.root.iterdir()) == []


def test_where_no_folder_can_be_made_there_is_no_cache(
    tmp_path: Path, build: Path, record: dict[str, Any]
) -> None:
    (tmp_path / "taken").write_text("")
    entry = Entry("key", tmp_path / "taken")
    with entry.locked():
        assert entry.load() is None
        assert entry.store(record, build) == "not kept in the cache: File exists"


def test_ctrl_c_leaves_nothing_behind(
    entry: Entry,
    build: Path,
    record: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy", interrupted)
        with pytest.raises(KeyboardInterrupt), entry.locked():
            entry.store(record, build)
    assert [path.suffix for path in entry.root.iterdir()] == [".lock"]
    with entry.locked():
        assert entry.store(record, build) is None


def test_the_second_of_two_waits_for_the_first(
    entry: Entry, build: Path, record: dict[str, Any]
) -> None:
    said: list[str] = []
    found: list[object] = []
    waits = threading.Event()

    def progress(step: str) -> None:
        said.append(step)
        waits.set()

    def second() -> None:
        other = Entry(entry.folder.name, entry.root)
        with other.locked(progress):
            found.append(other.load())

    thread = threading.Thread(target=second)
    with entry.locked():
        thread.start()
        assert waits.wait(10)
        entry.store(record, build)
    thread.join(10)
    assert said == ["wait for a process that compiles the same"]
    assert found[0] is not None


def test_the_folder_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLEAVE_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_key({"a": 1}) != cache_key({"a": 2})
