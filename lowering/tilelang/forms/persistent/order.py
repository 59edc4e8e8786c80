"""In which order the threadblocks of a persistent kernel take output tiles."""

from __future__ import annotations

from collections.abc import Sequence

from cleave.lowering.tilelang.text import grouped


def tile_lines(
    iterators: Sequence[str], counts: Sequence[str], swizzle: int
) -> list[str]:
    """
    Statements that compute the iterators of tile `number`; the last one is the fastest.

    With a `swizzle` that many steps of the last iterator but one come for each of the
    last: tiles that are computed at one time then share what they read in L2.
    """
    lines: list[str] = []
    number = "number"
    for position, iterator in enumerate(iterators[:-1]):
        if swizzle > 1 and position == len(iterators) - 2:
            lines += _grouped_lines(iterators[-2:], counts[-2:], swizzle, number)
            return lines
        inside = " * ".join(grouped(count) for count in counts[position + 1 :])
        if len(counts) > position + 2:
            inside = f"({inside})"
        is_last = position == len(iterators) - 2
        rest = iterators[-1] if is_last else "rest"
        lines += [
            f"{iterator} = {number} // {inside}",
            f"{rest} = {number} % {inside}",
        ]
        number = rest
    return lines or [f"{iterator} = number" for iterator in iterators]


def _grouped_lines(
    iterators: Sequence[str], counts: Sequence[str], swizzle: int, number: str
) -> list[str]:
    row, column = iterators
    row_count, column_count = (grouped(count) for count in counts)
    group = f"({swizzle} * {column_count})"
    return [
        f"first = {number} // {group} * {swizzle}",
        f"rows = T.min({swizzle}, {row_count} - first)",
        f"{row} = first + {number} % {group} % rows",
        f"{column} = {number} % {group} // rows",
    ]
