"""What a user states about a compilation, and which configurations that leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.default_configurations import (
    Choice,
    default_configurations,
)
from cleave.lowering.hardware import Hardware
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_reductions import schedule_reductions
from cleave.passes.scheduling.tiles import parse_tiles


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
        for name, value, least in (
            ("threads", self.threads, 1),
            ("stages", self.stages, 0),
            ("swizzle", self.swizzle, 0),
        ):
            if value is not None and value < least:
                raise CompilationError(f"{name} is {value}, and at least {least}")

    def of(self, choice: Choice) -> Choice:
        """A choice with what is stated in the place of what was chosen."""
        stated = {
            name: value
            for name in ("tile", "reduce", "threads", "stages", "swizzle")
            if (value := getattr(self, name)) is not None
        }
        configuration = replace(choice.configuration, **stated)
        if not stated:
            return choice
        why = [f"{', '.join(stated)}: as stated"]
        if "tile" not in stated and "reduce" not in stated:
            why += choice.why
        return Choice(configuration, tuple(why))


def stated_tiles(tiles: str | Mapping[str, int] | None) -> Mapping[str, int] | None:
    """
    Tile sizes as the API and the command line take them, `H=1 M=128` or a mapping.

    Raises CompilationError or PassFailedException for what is neither.
    """
    if tiles is None:
        return None
    parsed = parse_tiles(tiles) if isinstance(tiles, str) else dict(tiles)
    sizes: dict[str, int] = {}
    for name, size in parsed.items():
        if size is None or size < 1:
            raise CompilationError(
                f"the tile of '{name}' has no size of at least 1; write {name}=SIZE"
            )
        sizes[name] = size
    return sizes


def choices_for(graph: GraphOp, wanted: Wanted, hardware: Hardware) -> list[Choice]:
    """
    The configurations to try for a prepared graph, best first: those of the default
    rule, but for what is stated.

    Raises PassFailedException for a tile of a symbol that the graph does not have, or
    that is no dim which can be divided.
    """
    plan = schedule_blocks(graph, dict(wanted.tile or {}))
    if wanted.reduce is not None:
        schedule_reductions(plan, dict(wanted.reduce))
    if wanted.tile is not None and wanted.reduce is not None:
        stated = Configuration(wanted.tile, wanted.reduce)
        return [wanted.of(Choice(stated, ()))]
    choices = [wanted.of(c) for c in default_configurations(graph, hardware)]
    return [c for i, c in enumerate(choices) if c not in choices[:i]]
