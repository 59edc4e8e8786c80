"""
Slices that end beyond their tile.

A load from GMEM gives zeros beyond the end of the tensor. A slice of a tile on chip
does not: behind a tile there lies another one. A slice that may end there is loaded
from GMEM, also where the whole tile has been loaded already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.ir import Block, BlockArgument
from xdsl.rewriter import Rewriter

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, facts_at
from cleave.dialects.itgraph.parts import View, tensor_type


def reload_slices(kernel: KernelOp) -> KernelOp:
    """
    Take slices that may end beyond a loaded tile from GMEM; the kernel as it then is.

    Those of a computed tile stay: what is beyond its end is masked wherever it counts.
    """
    block = kernel.body.block
    again: dict[BlockArgument, BlockArgument] = {}
    for level, position in list(_overhanging(block)):
        tile = cast(BlockArgument, level.sources[position])
        if tile not in again:
            again[tile] = _viewed_again(tile)
        first = list(level.operands).index(level.sources[0])
        level.operands[first + position] = again[tile]
    return cast(KernelOp, block.parent_op())


def _overhanging(block: Block) -> Iterator[tuple[Level, int]]:
    for level in block.walk():
        if not isinstance(level, Level):
            continue
        first_op = level.body.block.first_op
        facts = facts_at(first_op if first_op is not None else level)
        for position, view in enumerate(level.views):
            if not _is_loaded(view):
                continue
            dims = tensor_type(view.source).dims
            ends = [
                a + b for a, b in zip(view.tmap.offsets, view.tmap.tile, strict=True)
            ]
            if not all(map(facts.at_most, ends, dims)):
                yield level, position


def _is_loaded(view: View) -> bool:
    """Whether the view is a slice of what another level has on chip from GMEM."""
    source = view.source
    if not isinstance(source, BlockArgument):
        return False
    level = source.block.parent_op()
    if not isinstance(level, Level) or source.index >= len(level.sources):
        return False
    return any(isinstance(use.operation, Operator) for use in source.uses)


def _viewed_again(tile: BlockArgument) -> BlockArgument:
    """The same view once more. Only inner levels read it, so it stays in GMEM."""
    level = cast(Level, tile.block.parent_op())
    views = level.views
    new = level.with_views([*views, views[tile.index]], level.lets)
    argument = tile.block.insert_arg(tile.type, len(views))
    argument.name_hint = tile.name_hint
    Rewriter.replace_op(level, new)
    return argument
