"""
Device functions that generated modules define in CUDA, with what TileLang lacks.

A module has those that its kernels call: as a text, and as a function of its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class External:
    """A device function: the constant that holds its text, and what calls it."""

    constant: str
    function: str
    lines: Sequence[str]
    """Both definitions, as they stand in a module."""

    def is_called(self, lines: Iterable[str]) -> bool:
        return any(f"{self.function}(" in line for line in lines)


EXP2 = External(
    "EXP2",
    "exp2",
    '''\
EXP2 = """
__device__ __forceinline__ float cleave_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
"""


def exp2(x):
    return T.call_extern("float32", "cleave_exp2", x)'''.splitlines(),
)
"""
The exponential of the special-function units: within 2 ulp, and 0 below 2 ** -126,
where `exp2f` takes several instructions more to get denormal results right.
"""

READS_DONE = External(
    "READS_DONE",
    "reads_done",
    '''\
READS_DONE = """
// Ends the reads of a tile: TMA, which loads the next one, does not wait for them.
__device__ __forceinline__ void cleave_reads_done(const void* tile) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
"""


def reads_done(element):
    first = T.address_of(element)
    return T.call_extern("handle", "cleave_reads_done", first)'''.splitlines(),
)
"""
Between reads of a tile by threads and the barrier by which they allow TMA to write the
next one. TileLang 0.1.15 has only the barrier, which an H200 lets overtake loads that
wait for banks: rows of the tile after were read instead. The fence names the tile
because TileLang lets go of a tile behind the last statement that does.
"""

EXTERNALS = (EXP2, READS_DONE)


def called(lines: Sequence[str]) -> list[External]:
    """Those that these lines of a module call."""
    return [external for external in EXTERNALS if external.is_called(lines)]
