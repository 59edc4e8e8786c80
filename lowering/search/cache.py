"""
Results on disk: a graph that was compiled before is not compiled again.

An entry is a folder by the hash of everything that the result depends on: the graph
with its sizes, the GPU and its kind, versions, and what was asked for. It appears
complete or not at all (it is renamed into place) and under a lock, so that processes do
not disturb each other. An entry that does not load is removed and made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from cleave.lowering.built_plan import BuiltPlan, BuiltPlanError, load_built

RECORD = "compiled.json"
FOLDER_VARIABLE = "CLEAVE_CACHE_DIR"
LOCK_SECONDS = 600


def cache_folder() -> Path:
    """`CLEAVE_CACHE_DIR`, or the user's cache folder."""
    stated = os.environ.get(FOLDER_VARIABLE)
    return Path(stated) if stated else user_cache_path("cleave")


def cache_key(parts: Mapping[str, Any]) -> str:
    """The name of the entry for these parts, which JSON takes."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Entry:
    """One entry of the cache, which may not be there yet."""

    def __init__(self, key: str, folder: Path | None = None):
        self.root = folder or cache_folder()
        self.folder = self.root / key

    @contextmanager
    def locked(self) -> Generator[None]:
        """
        Hold the entry against other processes. Where the disk is read-only or the lock
        does not become free, go on without: renaming keeps entries whole all the same.
        """
        lock = FileLock(f"{self.folder}.lock", timeout=LOCK_SECONDS)
        with suppress(OSError, Timeout):
            self.root.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def load(self) -> tuple[dict[str, Any], BuiltPlan] | None:
        """The record and the build of an entry; None if there is no sound one."""
        try:
            record = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))
            return record, load_built(self.folder)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, BuiltPlanError):
            shutil.rmtree(self.folder, ignore_errors=True)
        return None

    def store(self, record: Mapping[str, Any], build: Path) -> str | None:
        """Put a build and its record there; why not, where the disk refuses it."""
        scratch: Path | None = None
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(dir=self.root))
            shutil.copytree(build, scratch, dirs_exist_ok=True)
            (scratch / RECORD).write_text(json.dumps(record), encoding="utf-8")
            shutil.rmtree(self.folder, ignore_errors=True)
            scratch.rename(self.folder)
        except OSError as error:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            return f"not kept in the cache: {error.strerror or error}"
        return None
