"""
A compilation from the cache, or one that is made and kept there.

A result in the cache is printed in a second or two: nothing here imports PyTorch,
TileLang, NumPy or the passes, which `make` does when it is called.
"""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

from cleave.dialects.wording import counted
from cleave.lowering.compilation.compiled import Compiled, NotKeptError
from cleave.lowering.compilation.folder import clear_folder
from cleave.lowering.compilation.place import Place, require_gpu
from cleave.lowering.compilation.report import parse_report
from cleave.lowering.search.cache import (
    DIGESTS,
    RECORD,
    DamagedEntryError,
    Entry,
    cache_key,
    source_digest,
)
from cleave.lowering.search.folder import copy_files, write_folder

Record: TypeAlias = dict[str, Any]
"""`report`, `source`, `stages` and `pictures` of a compilation, as JSON takes them."""


def key_of(graph: str, place: Place, **asked: object) -> dict[str, Any]:
    """All that the result for a graph's text depends on, with what was asked for."""
    return {
        "graph": graph,
        "device": place.device.name if place.device else None,
        "arch": place.hardware.arch,
        "versions": place.versions,
        "source": source_digest(),
        **asked,
    }


def compile_cached(
    make: Callable[[Path], Record],
    key: Mapping[str, Any] | None,
    place: Place,
    *,
    gpu_is_required: bool,
    out_dir: Path | None,
    progress: Callable[[str], object],
    notes: Sequence[str] = (),
) -> Compiled:
    """
    What is in the cache under a key, or what `make` builds into a folder.

    Args:
        key: see `key_of`; None leaves the cache alone.
        out_dir: where all files are kept; if None, as long as the result.
        notes: what the report says besides, whether it is from the cache or not.
    Raises:
        CompilationError, if a GPU is required and the kernel did not run; NotKeptError
        if the files do not fit into `out_dir`; OSError; and what `make` raises.
    """
    is_new = out_dir is not None and not out_dir.exists()
    if out_dir is not None:
        clear_folder(out_dir)  # which shows before all the work whether that is allowed
    folder = Path(mkdtemp(prefix="cleave-"))
    try:
        if key is None:
            record = make(folder)
        else:
            record = _kept(make, Entry(cache_key(key)), place, folder, progress)
        record["report"]["notes"] += notes
        compiled = _finished(record, folder, place, gpu_is_required)
    except BaseException:
        if out_dir is not None:
            # What there is shows why there is no more.
            with suppress(OSError):
                copy_files(folder, out_dir)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finalizer = weakref.finalize(compiled, shutil.rmtree, folder, ignore_errors=True)
    if out_dir is not None:
        _move(compiled, out_dir, is_new)
        finalizer()
    return compiled


def _move(compiled: Compiled, folder: Path, is_new: bool) -> None:
    """Take a folder for the files of what was compiled, or leave nothing there."""
    try:
        copy_files(compiled.folder, folder)
    except OSError as error:
        with suppress(OSError):
            clear_folder(folder)
            if is_new:
                folder.rmdir()
        raise NotKeptError(compiled, folder, error) from error
    compiled.folder = folder


def _kept(
    make: Callable[[Path], Record],
    entry: Entry,
    place: Place,
    folder: Path,
    progress: Callable[[str], object],
) -> Record:
    """The record of an entry, which is made if it is not there."""
    start = time.monotonic()
    notes: list[str] = []
    with entry.locked(progress):
        try:
            if (record := entry.load()) is not None:
                copy_files(entry.folder, folder, but=(RECORD, DIGESTS))
                _note_origin(record["report"], entry, time.monotonic() - start)
                return record
        except DamagedEntryError as error:
            notes.append(f"made again, for the cache is damaged: {error}")
        record = make(folder)
        if lost := sum(trial["is_lost"] for trial in record["report"]["trials"]):
            notes.append(
                "not kept in the cache, for it may be another the next time: "
                f"{counted(lost, 'plan')} died or ran out of time or memory"
            )
        elif _is_final(record["report"], place):
            problem = entry.store(record, folder)
            notes += [] if problem is None else [problem]
    record["report"]["notes"] += notes
    return record


def _note_origin(report: dict[str, Any], entry: Entry, seconds: float) -> None:
    """Say what this took, and what is behind it."""
    made = sum(report["seconds"].values())
    report["notes"].append(f"from the cache, made in {made:.1f} s: {entry.folder}")
    report["seconds"] = {"cache": round(seconds, 3)}


def _is_final(report: Mapping[str, Any], place: Place) -> bool:
    """Whether a GPU that is there did all it could: the next time it may do more."""
    if place.device is None:
        return True
    has_sizes = None not in report["sizes"].values()
    is_measured = report["measured_ms"] is not None
    return _ran(report["checked"]) and (is_measured or not has_sizes)


def _ran(checked: str) -> bool:
    return checked == "device"


def _finished(
    record: Record, folder: Path, place: Place, gpu_is_required: bool
) -> Compiled:
    report = parse_report(record["report"])
    ran = _ran(report.checked)
    if gpu_is_required and not ran:
        require_gpu(report.not_measured)
    stages: dict[str, str] = record["stages"]
    write_folder(folder, stages, record["source"], report, record["pictures"])
    number = place.device.number if place.device and ran else None
    return Compiled(record["source"], stages, report, folder, number)
