"""
TileLang's language in NumPy for kernels that divide their warps by hand.

Two parts of a threadblock, one that loads and one that computes, run in turns and wait
for each other at barriers only. What is asynchronous happens when it shows mistakes: a
load writes as soon as it is issued; a matmul reads its operands, and a store its tile,
no sooner than somebody waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_language import (
    Language,
    in_gmem,
    nothing,
    poisoned,
)
from cleave.lowering.numpy_regions import Array, Region, Tile

Priority: TypeAlias = Literal["loads", "computation"]
"""Which part of a threadblock runs where both could."""

PRODUCER_THREADS = 128


class WarpgroupsAsked(Exception):
    """Raised by the first run of a threadblock whose warps do different things."""


@dataclass
class Barrier:
    """An mbarrier: a phase ends when so many threads have arrived."""

    count: int
    arrived: int = 0
    phase: int = 0

    def arrive(self, threads: int) -> None:
        self.arrived += threads
        if self.arrived > self.count:
            raise ExecutionError(f"more than {self.count} threads arrive at a barrier")
        if self.arrived == self.count:
            self.arrived, self.phase = 0, self.phase + 1

    def has_ended(self, parity: int) -> bool:
        """Whether the last phase of this parity, before the first one odd, is over."""
        return self.phase % 2 != parity


@dataclass
class _Part:
    """Threads of a threadblock that do the same."""

    first_thread: int
    threads: int
    allocations: int = 0
    blocked_by: Callable[[], bool] | None = None
    """Whether what it waits for has happened."""
    is_done: bool = False
    reads: list[Array] = field(default_factory=list[Array])
    """Buffers in SMEM that its threads have read since the last fence."""
    matmuls: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    stores: list[tuple[Tile | Region, Tile | Region]] = field(
        default_factory=list[tuple[Tile | Region, Tile | Region]]
    )

    @property
    def can_run(self) -> bool:
        return not self.is_done and (self.blocked_by is None or self.blocked_by())


@dataclass
class _Threadblock:
    """The parts of one threadblock; one of them runs at a time."""

    parts: Sequence[_Part]
    """In order of priority."""
    shared: list[Any] = field(default_factory=list[Any])
    loaded: list[Array] = field(default_factory=list[Array])
    """Buffers in SMEM that bulk copies have written."""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.turns = threading.Condition()
        self.running: _Part | None = self.parts[0]

    def run(self, call: Callable[[], None], own: threading.local) -> None:
        """Let every part make the call; raises what the first one raises."""
        threads = [
            threading.Thread(target=self._run_part, args=(part, call, own))
            for part in self.parts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def _run_part(
        self, part: _Part, call: Callable[[], None], own: threading.local
    ) -> None:
        own.part = part
        try:
            self._wait_for_turn(part)
            with np.errstate(all="ignore"):  # which threads do not inherit
                call()
            if part.stores:
                raise ExecutionError("SMEM ends before a store has read it")
        except BaseException as error:  # whichever it is, the other part has to end
            self.error = self.error or error
        part.is_done = True
        self.pass_on(part)

    def pass_on(self, part: _Part) -> None:
        """Give the turn to the part that can run and comes first; wait for it back."""
        with self.turns:
            able = [other for other in self.parts if other.can_run]
            if not able and not all(other.is_done for other in self.parts):
                self.error = self.error or ExecutionError(
                    "every part of a threadblock waits at a barrier"
                )
            self.running = able[0] if able else None
            self.turns.notify_all()
        if not part.is_done:
            self._wait_for_turn(part)

    def _wait_for_turn(self, part: _Part) -> None:
        with self.turns:
            self.turns.wait_for(lambda: self.running is part or self.error is not None)
        if self.error is not None:
            raise ExecutionError("the threadblock has failed")


@dataclass(frozen=True, eq=False)
class _SharedTile(Tile):
    """A buffer in SMEM; elements of it are read by threads."""

    reads: Callable[[], list[Array]]

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if not isinstance(found, Region):
            self.reads().append(self.base)
        return found


class WarpgroupLanguage(Language):
    """The language with barriers, asynchronous copies and matmuls."""

    def __init__(self, sizes: Mapping[str, int], priority: Priority = "loads"):
        super().__init__(sizes)
        self.priority = priority
        self.threads = 0
        self.own = threading.local()
        self.threadblock: _Threadblock | None = None

    def run(self, call: Callable[[], None]) -> None:
        """Run one threadblock, in parts if it divides its warps."""
        self.own.part = None
        try:
            call()
        except WarpgroupsAsked:
            rest = self.threads - PRODUCER_THREADS
            parts = [_Part(0, PRODUCER_THREADS), _Part(PRODUCER_THREADS, rest)]
            if self.priority == "computation":
                parts.reverse()
            self.threadblock = _Threadblock(parts)
            self.threadblock.run(call, self.own)

    def Kernel(self, *extents: int, threads: int) -> Any:
        self.threads = threads
        return super().Kernel(*extents, threads=threads)

    def get_thread_binding(self) -> int:
        if self.own.part is None:
            raise WarpgroupsAsked
        return self._part.first_thread

    @property
    def _part(self) -> _Part:
        return self.own.part

    # Memory

    def _once(self, make: Callable[[], Any]) -> Any:
        """What the parts of a threadblock share, made by the first that asks for it."""
        if self.own.part is None or self.threadblock is None:
            return make()
        part, shared = self._part, self.threadblock.shared
        if part.allocations == len(shared):
            shared.append(make())
        part.allocations += 1
        return shared[part.allocations - 1]

    def alloc_shared(self, shape: Sequence[int], dtype: str) -> Tile:
        return self._once(
            lambda: _SharedTile(poisoned(shape, dtype), "smem", self._reads)
        )

    def alloc_barrier(self, counts: Sequence[int]) -> list[Barrier]:
        return self._once(lambda: [Barrier(count) for count in counts])

    alloc_var = staticmethod(nothing)

    def _reads(self) -> list[Array]:
        return [] if self.own.part is None else self._part.reads

    # Synchronization

    def fence_proxy_async(self) -> None:
        self._part.reads.clear()

    def barrier_arrive(self, barrier: Barrier) -> None:
        loaded = {id(buffer) for buffer in self._turns.loaded}
        if any(id(buffer) in loaded for buffer in self._part.reads):
            raise ExecutionError("threads let go of a tile that they may still read")
        barrier.arrive(self._part.threads)
        self._turns.pass_on(self._part)

    def barrier_wait(self, barrier: Barrier, parity: int) -> None:
        part = self._part
        part.blocked_by = lambda: barrier.has_ended(parity)
        if not part.blocked_by():
            self._turns.pass_on(part)
        part.blocked_by = None

    @property
    def _turns(self) -> _Threadblock:
        assert self.threadblock is not None
        return self.threadblock

    sync_threads = warpgroup_fence_operand = staticmethod(nothing)
    dec_max_nreg = inc_max_nreg = staticmethod(nothing)

    # What is asynchronous

    def tma_copy(
        self,
        source: Tile | Region,
        target: Tile | Region,
        barrier: Barrier | None = None,
    ) -> None:
        for region in in_gmem(source, target):
            region.require_bulk()
        if barrier is not None:
            self._turns.loaded.append(target.base)
            target.write(source.read())
        else:
            self._part.stores.append((source, target))

    def tma_store_wait(self, count: int) -> None:
        stores = self._part.stores
        while len(stores) > count:
            source, target = stores.pop(0)
            target.write(source.read())

    def wgmma_gemm(self, a: Region, b: Region, c: Tile, **options: Any) -> None:
        self._part.matmuls.append(lambda: self.gemm(a, b, c, **options))

    def wait_wgmma(self, count: int) -> None:
        matmuls = self._part.matmuls
        while len(matmuls) > count:
            matmuls.pop(0)()

    unroll = Language.serial
