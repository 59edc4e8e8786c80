"""Configurations: everything that is chosen when a graph is scheduled and lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.passes import ModulePass

from cleave.dialects.wording import counted


@dataclass(frozen=True)
class Configuration:
    """
    Tile sizes by symbol, and the launch of the kernels.

    `tile` divides output dims over threadblocks, `reduce` divides reduced dims into the
    steps of loops; a dim that neither names stays whole. `threads` is None where
    `plan-memory` decides, `swizzle` is the panel width of L2 rasterization (0: none).
    """

    tile: Mapping[str, int]
    reduce: Mapping[str, int]
    threads: int | None = None
    stages: int = 2
    swizzle: int = 0

    def passes(self) -> list[ModulePass]:
        """The passes that make planned tile programs of prepared graphs."""
        # A report of what is in the cache has a configuration, and no need of them.
        from cleave.passes.plan_memory import PlanMemoryPass
        from cleave.passes.schedule_blocks import ScheduleBlocksPass
        from cleave.passes.schedule_masks import ScheduleMasksPass
        from cleave.passes.schedule_reductions import ScheduleReductionsPass

        return [
            ScheduleBlocksPass(tile=tiles_text(self.tile)),
            ScheduleReductionsPass(tile=tiles_text(self.reduce)),
            ScheduleMasksPass(),
            PlanMemoryPass(
                threads=self.threads, stages=self.stages, swizzle=self.swizzle
            ),
        ]

    def __str__(self) -> str:
        threads = f"{self.threads} threads" if self.threads else "default threads"
        parts = [
            f"tile {tiles_text(self.tile) or 'none'}",
            f"reduce {tiles_text(self.reduce) or 'none'}",
            threads,
            counted(self.stages, "stage"),
        ]
        if self.swizzle:
            parts.append(f"swizzle {self.swizzle}")
        return ", ".join(parts)


def tiles_text(tiles: Mapping[str, int]) -> str:
    """`H=1 M=128`, as passes and the command line take it."""
    return " ".join(f"{name}={size}" for name, size in tiles.items())
