"""The configurations that are left to try by what a user states."""

from __future__ import annotations

from dataclasses import replace

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.default_configurations import (
    Choice,
    default_configurations,
)
from cleave.lowering.compilation.wanted import Wanted
from cleave.lowering.hardware import Hardware
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_reductions import schedule_reductions


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
        return [_as_stated(Choice(stated, ()), wanted)]
    defaults = default_configurations(graph, hardware)
    choices = [_as_stated(choice, wanted) for choice in defaults]
    return [c for i, c in enumerate(choices) if c not in choices[:i]]


def _as_stated(choice: Choice, wanted: Wanted) -> Choice:
    """A choice with what is stated in the place of what was chosen."""
    stated = wanted.stated
    if not stated:
        return choice
    why = [f"{', '.join(stated)}: as stated"]
    if "tile" not in stated and "reduce" not in stated:
        why += choice.why
    return Choice(replace(choice.configuration, **stated), tuple(why))
