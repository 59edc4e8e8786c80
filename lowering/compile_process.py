"""
One compiling process: it builds the generated modules that it is asked for.

A request has `module`, `arch`, `folder` and `memory_bytes`; the answer has `error`,
None if the build is in the folder, and `is_lost`, whether that is for want of memory or
disk, or of a tool that died, so that it may not happen again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cleave.lowering.serving import Note, serve


def main() -> int:
    """Serve `cleave.lowering.compile_workers`."""

    def answer(request: dict[str, Any], note: Note) -> dict[str, Any]:
        limit_memory(request["memory_bytes"])
        module, folder = Path(request["module"]), Path(request["folder"])
        return build_module(module, request["arch"], folder)

    return serve(answer)


def build_module(module: Path, arch: str, folder: Path) -> dict[str, Any]:
    """Build a generated module into a folder; the answer."""
    from cleave.lowering.cuda import LoweringError, build
    from cleave.lowering.generated import GeneratedModuleError, load_generated
    from cleave.lowering.toolchain import ToolchainError, ToolLostError

    try:
        build(load_generated(module), arch, folder)
    except MemoryError:
        return {"error": "out of memory", "is_lost": True}
    except (GeneratedModuleError, LoweringError, ToolchainError, OSError) as error:
        lost = (MemoryError, OSError, ToolLostError)
        is_lost = any(isinstance(each, lost) for each in _with_causes(error))
        return {"error": " ".join(str(error).split()), "is_lost": is_lost}
    return {"error": None, "is_lost": False}


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def limit_memory(extra_bytes: int) -> None:
    """
    Let this process, and each that it starts, allocate so much more than it holds now.

    Counted are private writable pages: the libraries of PyTorch and TileLang map far
    more than they use. Where the system counts no such thing, there is no limit.
    """
    import resource

    try:
        held = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    except OSError:
        return
    limit = int(held) * os.sysconf("SC_PAGE_SIZE") + extra_bytes
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


if __name__ == "__main__":
    raise SystemExit(main())
