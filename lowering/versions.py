"""The versions of what a compilation depends on, without importing any of it."""

from __future__ import annotations

import platform
from importlib import metadata

import cleave

PACKAGES = ("xdsl", "numpy", "torch", "tilelang")


def versions(nvcc: str | None) -> dict[str, str]:
    """The versions of all that a compilation depends on, as far as it is there."""
    found = {"cleave": cleave.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if nvcc is not None:
        found["nvcc"] = nvcc
    return found
