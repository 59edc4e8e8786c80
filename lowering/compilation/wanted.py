"""What a user states about a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from cleave.passes.scheduling.tiles import parse_tiles

STATED = ("tile", "reduce", "threads", "stages", "swizzle")
"""What `Wanted` may state of a configuration."""


class CompilationError(ValueError):
    """A graph that cannot be compiled as it was asked for; the message says why."""


@dataclass(frozen=True)
class Wanted:
    """
    What is stated; None leaves it to the default rule.

    `tile` and `reduce` are complete: a dim that they do not name stays whole.
    """

    tile: Mapping[str, int] | None = None
    reduce: Mapping[str, int] | None = None
    threads: int | None = None
    stages: int | None = None
    swizzle: int | None = None
    fast_math: bool = False
    require_gpu: bool = False

    def __post_init__(self) -> None:
        launch = ("threads", "stages", "swizzle")
        stated = {name: v for name in launch if (v := getattr(self, name)) is not None}
        if not stated:
            return
        from cleave.passes.option_ranges import ranges
        from cleave.passes.plan_memory import PlanMemoryPass

        allowed = ranges(PlanMemoryPass)
        for name, value in stated.items():
            if not _is_whole(value) or value not in allowed[name]:
                raise CompilationError(
                    f"{name} is {value!r}; it is a whole number {allowed[name]}"
                )

    @property
    def stated(self) -> dict[str, Any]:
        """What is stated of a configuration, by name."""
        values = {name: getattr(self, name) for name in STATED}
        return {name: value for name, value in values.items() if value is not None}


def stated_tiles(tiles: str | Mapping[str, int] | None) -> Mapping[str, int] | None:
    """
    Tile sizes as the API and the command line take them, `H=1 M=128` or a mapping.

    Raises CompilationError or PassFailedException for what is neither.
    """
    if tiles is None:
        return None
    # Programs whose types nobody checks may give anything.
    if not isinstance(given := cast(object, tiles), str | Mapping):
        raise CompilationError(
            f"tiles are {given!r}; they are text, as in 'M=128', or sizes by symbol"
        )
    parsed = parse_tiles(tiles) if isinstance(tiles, str) else dict(tiles)
    sizes: dict[str, int] = {}
    for name, size in parsed.items():
        if size is None:
            raise CompilationError(
                f"the tile of '{name}' has no size; write {name}=SIZE"
            )
        if not _is_whole(size) or size < 1:
            raise CompilationError(
                f"the tile of '{name}' is {size!r}; it is a whole number of at least 1"
            )
        sizes[name] = size
    return sizes


def _is_whole(value: object) -> bool:
    """Whether a number is whole, also where somebody states none."""
    return isinstance(value, int) and not isinstance(value, bool)
