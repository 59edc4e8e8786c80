"""
One compiling process: it builds the generated modules that its standard input names.

`cleave.lowering.compile_workers` starts it as a module and may kill it at any time.
Each line of input is a JSON object with `module`, `arch`, `folder` and `memory_bytes`;
each line of output is one with `error`, null if the build is in the folder. Whatever
else writes to standard output is sent to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO


def main() -> int:
    """Serve until standard input ends."""
    _die_with_parent()
    answers = _take_standard_output()
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        limit_memory(request["memory_bytes"])
        error = build_module(
            Path(request["module"]), request["arch"], Path(request["folder"])
        )
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()
    return 0


def build_module(module: Path, arch: str, folder: Path) -> str | None:
    """Build a generated module into a folder; why it failed, in one line, or None."""
    from cleave.lowering.cuda import LoweringError, build
    from cleave.lowering.generated import GeneratedModuleError, load_generated
    from cleave.lowering.toolchain import ToolchainError

    try:
        build(load_generated(module), arch, folder)
    except MemoryError:
        return "out of memory"
    except (GeneratedModuleError, LoweringError, ToolchainError, OSError) as error:
        return " ".join(str(error).split())
    return None


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


def _die_with_parent() -> None:
    """Have Linux end this process, even in the midst of a job, with the one above."""
    import ctypes
    import signal

    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _take_standard_output() -> TextIO:
    """Standard output for answers alone; prints of others go to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    raise SystemExit(main())
