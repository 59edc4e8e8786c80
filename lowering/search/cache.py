"""
Results on disk: a graph that was compiled before is not compiled again.

An entry is a folder by the hash of everything that the result depends on: the graph
with its sizes, the GPU and its kind, versions, Cleave's own source, and what was asked
for. It appears complete or not at all (it is renamed into place) and under a lock, so
that processes do not disturb each other. An entry has the hash of each of its files;
one of which a file is missing or has changed is removed and made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

import cleave
from cleave.lowering.built_plan import MANIFEST, BuiltPlanError, load_built
from cleave.lowering.compilation.report import parse_report

RECORD = "compiled.json"
DIGESTS = "digests.json"
"""The hashes of all other files of an entry, by name."""
BUILT = (MANIFEST, "kernel_*.*")
"""The names of the files of a build, which may be among those of others."""
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


@cache
def source_digest() -> str:
    """A hash of Cleave's source, which changes more often than its version."""
    digest = hashlib.sha256()
    package = Path(cleave.__file__).parent
    files: list[str] = []
    for folder, _, names in os.walk(package, followlinks=True):
        files += [f"{folder}/{n}" for n in names if not n.endswith((".pyc", ".swp"))]
    for file in sorted(files):
        with suppress(FileNotFoundError):  # of an editor
            digest.update(f"{Path(file).relative_to(package)}\0".encode())
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


class DamagedEntryError(Exception):
    """An entry that is not what was stored, and is no more; the message says why."""


class Entry:
    """One entry of the cache, which may not be there yet."""

    def __init__(self, key: str, folder: Path | None = None):
        self.root = folder or cache_folder()
        self.folder = self.root / key

    @contextmanager
    def locked(
        self, progress: Callable[[str], object] = lambda step: None
    ) -> Generator[None]:
        """
        Hold the entry against other processes. Where the disk is read-only or the lock
        does not become free, go on without: renaming keeps entries whole all the same.
        """
        lock = FileLock(f"{self.folder}.lock")
        with suppress(OSError, Timeout):
            self.root.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                progress("wait for a process that compiles the same")
                lock.acquire(timeout=LOCK_SECONDS)
        try:
            yield
        finally:
            lock.release()

    def load(self) -> dict[str, Any] | None:
        """
        The record of an entry, beside its build; None if there is none. Raises
        DamagedEntryError, and then there is none any more.
        """
        if not os.path.lexists(self.folder):
            return None
        try:
            _require_same(self.folder)
            record = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))
            parse_report(record["report"])
            if (self.folder / MANIFEST).exists():  # there was an nvcc
                load_built(self.folder)
            return record
        except (OSError, ValueError, TypeError, LookupError, BuiltPlanError) as error:
            _remove(self.folder)
            reason = error.strerror if isinstance(error, OSError) else error
            raise DamagedEntryError(str(reason)) from error

    def store(self, record: Mapping[str, Any], build: Path) -> str | None:
        """Put a build and its record there; why not, where the disk refuses it."""
        scratch: Path | None = None
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(dir=self.root))
            for pattern in BUILT:
                for file in build.glob(pattern):
                    shutil.copy(file, scratch)
            (scratch / RECORD).write_text(json.dumps(record), encoding="utf-8")
            digests = json.dumps(_digests(scratch))
            (scratch / DIGESTS).write_text(digests, encoding="utf-8")
            _remove(self.folder)
            scratch.rename(self.folder)
        except OSError as error:
            return f"not kept in the cache: {error.strerror or error}"
        finally:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
        return None


def _remove(path: Path) -> None:
    """Remove what has this name, be it no folder at all, as far as that is allowed."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()  # a file, or a link


def _require_same(folder: Path) -> None:
    """Raises ValueError for other files than those of which there are hashes."""
    stored: dict[str, str] = {}
    with suppress(OSError, ValueError):
        stored = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
    if not stored:
        raise ValueError(f"{DIGESTS} is missing or has changed")
    found = _digests(folder)
    for name in sorted(stored.keys() | found.keys()):
        if stored.get(name) != found.get(name):
            raise ValueError(f"{name} is missing or has changed")


def _digests(folder: Path) -> dict[str, str]:
    """Hashes of the files of an entry, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and path.name != DIGESTS
    }
