"""
The loop structures of a graph, with tile sizes as symbols.

A structure says which dims of the outputs are divided over threadblocks and which
reduced dims are iterated; everything else about its tile program follows, so that it is
scheduled and its memory planned once for all tile sizes (DESIGN section 8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import names_of
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.operators import Tail
from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.memory.placement import (
    WARPGROUP,
    require_element_types,
    require_narrow_operands,
)
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_masks import schedule_masks
from cleave.passes.schedule_reductions import schedule_reductions
from cleave.passes.scheduling.dim_choices import DimUse

Tiles: TypeAlias = Mapping[str, int | None]
"""Tile sizes by symbol; None for one that stays a symbol."""
Warps: TypeAlias = Literal["rows", "columns"]

TENSOR_CORE_STEP = 16
"""Elements by which columns and depth of a matmul grow."""
LONG_ROW = 8192
"""From here on, one warpgroup has too few registers for a row."""
LONGEST_SPAN = 8 * WARPGROUP
"""Elements of the vectors of a warpgroup."""
WHOLE = 128
"""A dim of a matmul of at most this size is not worth dividing."""
WHOLE_RUN = 64
"""The same of the last dim of an output that no matmul makes: a memory line."""
WHOLE_MATMUL_DIM = 1024
"""The largest rows, columns or depth of a matmul that SMEM could hold undivided."""
WHOLE_ROW = 65536
"""The same of what no matmul makes: registers of a multiprocessor."""
LARGE_DEPTH = 512
"""A depth from which a loop inside of another loop can pay."""


@dataclass(frozen=True)
class LoopStructure:
    """Which dims are divided (`blocks`), and which reduced ones iterated."""

    blocks: Tiles
    reductions: Tiles
    has_tails: bool = False
    """Some reduced dim is not a multiple of its tile, so that loops mask the last."""

    def __str__(self) -> str:
        parts = [f"blocks {_text(self.blocks)}", f"loops {_text(self.reductions)}"]
        return ", ".join([*parts, *(["tails"] if self.has_tails else [])])


def loop_structures(
    uses: Mapping[str, DimUse], iterate: bool = True
) -> list[LoopStructure]:
    """
    The structures worth scheduling, not yet checked to have a schedule.

    Args:
        uses: how the graph uses its dims.
        iterate: whether reductions may be iterated (else all are whole: the paper's
            ablation "no iterative tiling").
    """
    blocks = {name: _block_choices(use) for name, use in uses.items()}
    loops = {name: _loop_choices(use, iterate) for name, use in uses.items()}
    found: dict[tuple[object, ...], LoopStructure] = {}
    names = list(uses)
    options = [[*product(blocks[name], loops[name])] for name in names]
    for combination in product(*options):
        structure = _structure(dict(zip(names, combination, strict=True)), uses)
        if structure is not None:
            key = (*structure.blocks.items(), "", *structure.reductions.items())
            found.setdefault(key, structure)
    return list(found.values())


Choice: TypeAlias = int | Literal["whole"] | None
"""A tile size, None for one that stays a symbol, or no tile at all."""


def _structure(
    chosen: Mapping[str, tuple[Choice, Choice]], uses: Mapping[str, DimUse]
) -> LoopStructure | None:
    blocks: dict[str, int | None] = {}
    reductions: dict[str, int | None] = {}
    for name, (block, loop) in chosen.items():
        if block is None and loop is None and _can_be_whole(uses[name]):
            return None  # every threadblock would go through all of the dim
        if loop is None and not uses[name].is_output and not uses[name].is_batch:
            block = "whole"  # it is padded by the tiles of its loop
        if block != "whole":
            blocks[name] = block
        if loop != "whole":
            reductions[name] = loop
    return LoopStructure(blocks, reductions)


def _can_be_whole(use: DimUse) -> bool:
    return use.least <= (WHOLE_MATMUL_DIM if use.in_matmul else WHOLE_ROW)


def is_whole_choice(use: DimUse) -> bool:
    """Whether some structure leaves an output dim whole; matmul rows are padded."""
    is_rows = use.in_matmul and not use.is_last and not use.is_reduced
    return _can_be_whole(use) and not is_rows


def _block_choices(use: DimUse) -> list[Choice]:
    """How a dim may be divided over threadblocks; a padded dim is a tile, too."""
    if use.is_batch:
        return [1]
    padded = _padded(use)
    if not use.is_output:
        # Only reduced: padded if it is whole and tensor cores need it.
        return [padded]
    choices: list[Choice] = [padded] if is_whole_choice(use) else []
    least = WHOLE if use.in_matmul else WHOLE_RUN if use.is_last else 1
    if use.extent > least or not choices:
        choices.append(None)
    return choices


def _loop_choices(use: DimUse, iterate: bool) -> list[Choice]:
    """Whether a reduced dim is iterated."""
    if not use.is_reduced:
        return ["whole"]
    if use.is_reduced_early:
        # Matrices one by one: registers hold no tile of more than two dims.
        return [1] if iterate else ["whole"]
    choices: list[Choice] = []
    if _can_be_whole(use):
        choices.append("whole")
    least = WHOLE if not use.is_output else LARGE_DEPTH
    if iterate and (use.extent > least or not choices):
        choices.append(None)
    return choices or ["whole"]


def _padded(use: DimUse) -> Choice:
    """
    The size of a whole dim: what tensor cores take, if a matmul has it, and else what
    threads have as many elements of each, if rows are reduced or added up.
    """
    if use.in_matmul:
        step = TENSOR_CORE_STEP if use.extent <= WHOLE_MATMUL_DIM else 1
    elif use.is_row and use.least == use.extent:
        # Vectors of all threads end with the row, or some rows with that of a thread.
        threads = WARPGROUP if use.extent < LONG_ROW else 2 * WARPGROUP
        step = min(threads, 1 << (use.extent - 1).bit_length())
    elif use.is_behind and use.least == use.extent:
        step = min(LONGEST_SPAN, 1 << (use.extent - 1).bit_length())
    else:
        step = 1
    size = -(-use.extent // step) * step
    return "whole" if size == use.extent else size


@dataclass(frozen=True)
class Scheduled:
    """The tile program of a structure, its memory not planned."""

    plan: PlanOp
    blocks: Mapping[str, str]
    """Tile symbols without a value that divide outputs, and what they divide."""
    loops: Mapping[str, str]
    """The same of what loops iterate over."""


def schedule(graph: GraphOp, structure: LoopStructure) -> Scheduled:
    """Raises PassFailedException where two paths disagree on the tile of a value."""
    return iterated(graph, schedule_blocks(graph, dict(structure.blocks)), structure)


def iterated(graph: GraphOp, divided: PlanOp, structure: LoopStructure) -> Scheduled:
    """The same from the graph with its outputs divided, which is left as it is."""
    plan = schedule_reductions(divided, dict(structure.reductions))
    if not structure.has_tails:
        _drop_tails(plan)
    for loop in list(plan.walk()):
        if isinstance(loop, LoopOp):
            schedule_masks(loop)
    bound = plan.facts.binding
    free = [name for name in plan.symbol_names if not isinstance(bound.get(name), int)]
    before, known = set(divided.symbol_names), set(graph.symbol_names)
    return Scheduled(
        plan,
        {tile: _divided(tile, known) for tile in free if tile in before - known},
        {tile: _divided(tile, known) for tile in free if tile not in before},
    )


def _divided(tile: str, known: set[str]) -> str:
    """`M` for `BM` and `BM_2`, as `TileSizes` names them."""
    name = tile.removeprefix("B")
    return name if name in known else re.sub(r"_\d+$", "", name)


def _drop_tails(plan: PlanOp) -> None:
    """Take it that tiles divide what loops reduce; padding stays masked."""
    bound = plan.facts.binding.keys()
    for op in list(plan.walk()):
        if isinstance(op, Tail):
            unbound = names_of(op.params["limit"]) - bound
            if unbound:
                op.out.replace_all_uses_with(op.source)
                op.detach()
                op.erase()


def planned(plan: PlanOp, memory: PlanMemoryPass) -> PlanOp:
    """A copy of a plan with its memory planned; PassFailedException where it cannot."""
    require_element_types(plan)
    require_narrow_operands(plan)
    copy = plan.clone()
    for kernel in kernels_of(copy):
        memory.plan_kernel(kernel)
    return copy


def kernels_of(plan: PlanOp) -> Sequence[KernelOp]:
    return [op for op in plan.body.block.ops if isinstance(op, KernelOp)]


def _text(tiles: Tiles) -> str:
    sizes = [name if size is None else f"{name}={size}" for name, size in tiles.items()]
    return " ".join(sizes) or "none"
