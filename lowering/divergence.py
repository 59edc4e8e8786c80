"""
Barriers that not all of their threads reach: such a kernel never ends, or goes wrong.

TileLang 0.1.15 puts a barrier right before the statement that needs it, also where a
branch lets only some threads execute that, as it does if a tile has less elements than
there are threads. No compiler says so.
"""

from __future__ import annotations

import re
from typing import Literal

Branch = Literal["none", "roles", "part"]

OF_ALL = re.compile(r"\b__syncthreads\(\)")
OF_SOME = re.compile(r"\b__sync_thread_partial\b|\bAllReduce<tl::\w+, (?:64|\d{3,})\b")
"""Reductions among more threads than a warp has meet at a barrier."""
ROLES = re.compile(r"if \(\(\(int\)threadIdx\.x\) < \d+\) \{")
"""Warps that load apart from those that compute: barriers count the latter alone."""
PART = re.compile(r"if \(.*(?:threadIdx|tl_shuffle_elect).*\) \{")


def divergent_barriers(cuda: str) -> tuple[str, ...]:
    """The branches of a kernel's CUDA text in which threads wait for others in vain."""
    found: dict[str, None] = {}
    around: list[tuple[Branch, str]] = []
    for line in map(str.strip, cuda.splitlines()):
        waits_for_all = OF_ALL.search(line) is not None
        waits = waits_for_all or OF_SOME.search(line) is not None
        for branch, condition in around:
            if (waits and branch == "part") or (waits_for_all and branch == "roles"):
                found[condition] = None
        for brace in re.findall(r"[{}]", line):
            if brace == "{":
                around.append(_branch(line))
            elif around:
                left = around.pop()
                if line.startswith("} else {"):
                    around.append(left)
                    break
    return tuple(found)


def _branch(line: str) -> tuple[Branch, str]:
    if ROLES.fullmatch(line):
        return "roles", line.removesuffix(" {")
    if PART.fullmatch(line):
        return "part", line.removesuffix(" {")
    return "none", ""
