"""In which order the threadblocks of a persistent kernel take output tiles."""

from __future__ import annotations

from collections.abc import Sequence

from cleave.lowering.tilelang.text import grouped


def tile_lines(
    iterators: Sequence[str],
    counts: Sequence[str],
    swizzle: int = 0,
    divides: bool = True,
) -> list[str]:
    """
    Statements that compute the iterators of tile `number`; the last one is the fastest.

    With a `swizzle` that many steps of the last iterator but one come for each of the
    last: tiles that are computed at one time then share what they read in L2. Where it
    does not divide their count, which `divides` says, the last group is smaller.
    """
    if len(iterators) < 2:
        return [f"{iterator} = number" for iterator in iterators]
    lines: list[str] = []
    number = "number"
    *outer, row, column = iterators
    for position, iterator in enumerate(outer):
        inside = " * ".join(grouped(count) for count in counts[position + 1 :])
        lines += [
            f"{iterator} = {number} // ({inside})",
            f"rest = {number} % ({inside})",
        ]
        number = "rest"
    rows, columns = (grouped(count) for count in counts[-2:])
    if swizzle < 2:
        return [
            *lines,
            f"{row} = {number} // {columns}",
            f"{column} = {number} % {columns}",
        ]
    group = f"({swizzle} * {columns})"
    if divides:
        return [
            *lines,
            f"{row} = {number} // {group} * {swizzle} + {number} % {swizzle}",
            f"{column} = {number} % {group} // {swizzle}",
        ]
    return [
        # Variables, so that TileLang does not put the divisions into every step.
        f'{row} = T.alloc_var("int32")',
        f'{column} = T.alloc_var("int32")',
        *lines,
        f"first = {number} // {group} * {swizzle}",
        f"rows = T.min({swizzle}, {rows} - first)",
        f"{row} = first + {number} % {group} % rows",
        f"{column} = {number} % {group} // rows",
    ]
