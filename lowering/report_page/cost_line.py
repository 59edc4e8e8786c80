"""What binds a kernel, in one line of a report."""

from collections.abc import Mapping
from typing import Any

from cleave.dialects.wording import counted, duration, several


def cost_line(cost: Mapping[str, Any]) -> str:
    """The resource that a kernel uses longest, for how long, and its threadblocks."""
    bound_by = cost["bound_by"]
    text = (
        f"{cost['kernel']}: by {bound_by}, {duration(cost['alone_ms'][bound_by])} "
        f"of {duration(cost['predicted_ms'])}"
    )
    return f"{text}; {grid_text(cost['grid'])}" if cost["grid"] else text


def grid_text(grid: Mapping[str, Any]) -> str:
    """`512 threadblocks in 3.88 waves`, and how many run on a multiprocessor."""
    threadblocks = counted(grid["threadblocks"], "threadblock")
    if grid["tiles"] != grid["threadblocks"]:
        threadblocks = f"{counted(grid['tiles'], 'tile')} by {threadblocks}"
    waves = several(grid["waves"])
    text = f"{threadblocks} in {waves} {'wave' if waves == '1' else 'waves'}"
    if (blocks := grid["blocks_per_multiprocessor"]) > 1:
        text += f", {blocks} a multiprocessor"
    return text
