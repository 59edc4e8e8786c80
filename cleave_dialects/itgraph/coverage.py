"""The rule that the tiles of a kernel cover each output once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from cleave.dialects.dims import Dim, ceildiv, names_of, symbol
from cleave.dialects.itgraph.level import Level, facts_at, scope_of
from cleave.dialects.itgraph.parts import Output, tensor_type
from cleave.dialects.itgraph.tmap import Shape
from cleave.dialects.itgraph.verification import require_scope
from cleave.dialects.wording import counted


def verify_outputs(
    kernel: Level, outs: Sequence[Output], tiles: Sequence[SSAValue]
) -> None:
    """Check that tiles fit the outputs, are disjoint, and cover them."""
    if len(tiles) != len(outs):
        kernel.refuse(
            f"has {counted(len(outs), 'out')} but yields {counted(len(tiles), 'tile')}"
        )
    for position, (out, tile) in enumerate(zip(outs, tiles, strict=True)):
        type_ = tensor_type(tile)
        what = f"output {position}"
        if type_.element_type != out.type.element_type:
            kernel.refuse(f"{what} is {out.type} but {type_} is yielded")
        if not len(out.offsets) == type_.rank == out.type.rank:
            kernel.refuse(
                f"{what} has {counted(len(out.offsets), 'offset')} and a tile of rank "
                f"{type_.rank}, but {out.type} has rank {out.type.rank}"
            )
        if (scope := scope_of(kernel)) is not None:
            inside = scope.with_names(kernel.own_names)
            require_scope(kernel, out.offsets, inside, what)
            _verify_cover(kernel, out, type_.dims, what)


def _verify_cover(kernel: Level, out: Output, tile: Shape, what: str) -> None:
    facts = facts_at(kernel)
    ranges = {range_.iterator: range_ for range_ in kernel.ranges}
    covering: dict[str, int] = {}
    for axis, (dim, offset, size) in enumerate(
        zip(out.type.dims, out.offsets, tile, strict=True)
    ):
        where = f"{what}: dim {axis} ({dim})"
        used = sorted(names_of(offset) & ranges.keys())
        if not used:
            if not facts.equal(offset, 0) or not facts.at_most(dim, size):
                kernel.refuse(
                    f"{where} is not iterated, so its offset is 0 and its tile holds "
                    f"it, but the offset is {offset} and the tile {size}"
                )
            continue
        range_ = ranges[used[0]]
        if len(used) > 1 or not facts.equal(offset, symbol(range_.iterator) * size):
            kernel.refuse(
                f"{where} has offset {offset}, but tiles of {size} are disjoint and "
                f"adjacent at one iterator times the tile, {range_.iterator} * {size}"
            )
        end = ceildiv(dim, size)
        if not facts.equal(range_.lo, 0) or not facts.equal(range_.hi, end):
            kernel.refuse(
                f"{where} is covered by tiles of {size} if {range_.iterator} goes from "
                f"0 to {end}, but it goes from {range_.lo} to {range_.hi}"
            )
        if range_.iterator in covering:
            kernel.refuse(
                f"{what}: {range_.iterator} moves dims {covering[range_.iterator]} and "
                f"{axis} together, so only tiles on a diagonal are written"
            )
        covering[range_.iterator] = axis
    for iterator in ranges:
        if iterator not in covering:
            kernel.refuse(
                f"{what} is written once for each {iterator}, because its offsets "
                f"{_text(out.offsets)} do not use it"
            )


def _text(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(str(dim) for dim in dims)}]"
