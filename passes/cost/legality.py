"""Rules that tiles have to obey, as arrays over configurations and launches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import TileReduction
from cleave.passes.cost.evaluation import Array, Evaluation
from cleave.passes.cost.form import Limit, Mask, Parts, Rule
from cleave.passes.cost.origin import Origin
from cleave.passes.cost.work import WARPGROUP, WGMMA_DEPTH_BYTES, WGMMA_ROWS

GRID_LIMIT = 65535
"""Threadblocks along the second and third dim of a grid."""
MMA_ROWS = 16
COLUMNS = 16
"""Of a matmul that a warpgroup computes: multiples of 16 (odd multiples of 8 go wrong
in TileLang, its issue 2593)."""
WGMMA_COLUMNS = 256
VECTOR_LANES = (4, 8)
"""Elements that a thread takes at a time, at most; of float32 and of float16."""
MOST_LANES = 2**15
"""TileLang takes what TMA moves at once for a vector, and counts its lanes in 16 bits
with a sign ("Can't fetch the lanes of a scalable vector")."""
INSTRUCTION_REGISTERS = 26
"""What ptxas wants beside the accumulator of a single wgmma (its message C7602)."""


def tensor_core_rules(
    at: Evaluation, warpgroups: Array, launch_registers: Array, hardware: Hardware
) -> dict[str, Rule | Limit]:
    """What a tensor-core instruction asks of rows, columns, depth and registers."""
    forms = at.forms
    if not forms.products:
        return {}
    has_wgmma = "wgmma" in hardware.instructions
    by_columns = forms.warps == "columns"
    least = WGMMA_ROWS if has_wgmma else MMA_ROWS
    rows: list[tuple[Origin, Mask]] = []
    columns: list[tuple[Origin, Mask]] = []
    depth: list[tuple[Origin, Mask]] = []
    chained: list[tuple[Origin, Mask]] = []
    widest = np.zeros((1, 1))
    for product in forms.products:
        m, n, k = at(product.rows), at(product.columns), at(product.depth)
        each_rows = m if by_columns else m / warpgroups
        each_columns = n / warpgroups if by_columns else n
        origin, deep = product.origin, k * product.element_bytes
        rows.append((origin, each_rows % least != 0))
        columns.append((origin, each_columns % COLUMNS != 0))
        depth.append((origin, deep % WGMMA_DEPTH_BYTES != 0))
        widest = np.maximum(widest, np.minimum(each_columns, WGMMA_COLUMNS))
        if product.lhs_in_registers and has_wgmma:
            # With more rows, two instructions hold the operand: TileLang has no layout
            # for that with several warpgroups, and ptxas spills with one.
            chained.append((origin, each_rows != WGMMA_ROWS))
    rules: dict[str, Rule | Limit] = {
        "matmul rows": Rule.of(
            rows,
            f"a matmul gives each warpgroup no multiple of {least} rows",
        ),
        "matmul columns": Rule.of(
            columns,
            f"a matmul gives a warpgroup no multiple of {COLUMNS} columns",
        ),
        "matmul depth": Rule.of(
            depth,
            f"a matmul is no multiple of {WGMMA_DEPTH_BYTES} bytes deep",
        ),
        "chained matmul": Rule.of(
            chained,
            f"a matmul of a computed operand gives a warpgroup not {WGMMA_ROWS} rows",
        ),
    }
    if has_wgmma:
        rules["matmul registers"] = Limit(
            widest / 2 + INSTRUCTION_REGISTERS,
            launch_registers,
            "one matmul instruction takes {used} registers of a thread, "
            "which is launched with {limit}",
        )
    return rules


def layout_rules(at: Evaluation, threads: Array) -> dict[str, Rule | Limit]:
    """
    What TileLang 0.1.15 asks of tiles in registers: each thread gets as many elements,
    and where no tensor core says which, in vectors one after the other, so that rows
    have to end where vectors of all threads do.
    """
    forms = at.forms
    tiles = dict.fromkeys(tile for point in forms.points for tile, _ in point)
    reductions = [r for level in forms.level.walk() for r in level.reductions]
    rules: dict[str, Rule | Limit] = {
        "layouts": Rule.of(
            [
                (tile.origin, _is_uneven(at(tile.elements), threads))
                for tile in tiles
                if tile.spread == "all"
            ],
            "a tile has more elements than threads, and no multiple of them",
        ),
        "lanes": Rule.of(
            [
                (buffer.origin, at.product(buffer.tile) >= MOST_LANES)
                for buffer in forms.buffers
                if not buffer.in_boxes
            ],
            f"a tile in SMEM, not in boxes, has no fewer than {MOST_LANES} elements",
        ),
    }
    if forms.products:
        if forms.warps == "columns":
            rules["butterfly"] = Rule.of(
                [
                    (reduction.origin, ~_is_power_of_two(threads // WARPGROUP))
                    for reduction in reductions
                    if reduction.in_fragment
                ],
                "a number of warpgroups that is no power of two reduces rows together",
            )
        return rules
    rows: list[tuple[Origin, Mask]] = []
    for reduction in reductions:
        elements = at(reduction.elements)
        inner = at(reduction.inner)
        row = at(reduction.row) * inner
        broken = (elements < threads) & (threads % row != 0)
        for span in _spans(elements, threads):
            fits = (row % span == 0) | (span % row == 0)
            # Elements behind each other are a row of sums, and end where those do.
            fits = fits & ((inner % span == 0) | (span % inner == 0))
            broken = broken | ((elements >= threads) & ~fits)
        rows.append((reduction.origin, broken))
    rules["rows"] = Rule.of(
        rows, "a reduced row does not end where vectors of threads do"
    )
    if forms.rows_meet_tiles:
        rules["rows beside tiles"] = Rule.of(
            [
                (reduction.origin, _divides_threads(reduction, at, threads))
                for loop in forms.loops
                for reduction in loop.reductions
            ],
            "a row that a loop reduces lies in some of the threads, each of which then "
            "has all of the rows outside of the loop",
        )
    return rules


def _divides_threads(reduction: TileReduction, at: Evaluation, threads: Array) -> Mask:
    """
    Whether a row of a tile may lie in some of the threads, others having other rows.
    The layout of one value a row is then one of rows, by which TileLang lays tiles that
    it meets: 20480 elements in a thread, for LayerNorm of 8 rows in 256 threads.
    """
    elements = at(reduction.elements)
    row = at(reduction.row) * at(reduction.inner)
    divided = elements < threads
    for span in _spans(elements, threads):
        divided = divided | (row % span != 0)
    return divided & (elements != row)


def _spans(elements: Array, threads: Array) -> Iterator[Array]:
    """Elements of one vector of every thread, for each type that a tile may have."""
    each = np.maximum(1, elements // threads).astype(np.int64)
    for lanes in VECTOR_LANES:
        yield threads * np.gcd(each, lanes)


def _is_power_of_two(numbers: Array) -> Mask:
    whole = numbers.astype(np.int64)
    return whole & (whole - 1) == 0


def prelude_rules(
    at: Evaluation, has_common_prelude: Mask, threads: Array
) -> dict[str, Rule | Limit]:
    """
    What TileLang's planner for one loop asks of tiles on their way to SMEM before it:
    all `threads` that are launched compute them, and each gets as many elements. What
    reduces rows of them goes from thread to thread by halves.
    """
    is_refused = has_common_prelude & ~_is_power_of_two(threads)
    return {
        "prelude rows": Rule.of(
            [
                (reduction.origin, is_refused)
                for reduction in at.forms.level.reductions
                if at.forms.prelude
            ],
            "rows are reduced before a loop by threads whose number is no power of two",
        ),
        "prelude": Rule.of(
            [
                (
                    tile.origin,
                    _is_uneven(at(tile.elements), threads) & has_common_prelude,
                )
                for tile in at.forms.prelude
            ],
            "a tile that is computed before a loop has more elements than all threads, "
            "and no multiple of them",
        ),
    }


def _is_uneven(elements: Array, threads: Array) -> Mask:
    """Whether threads cannot have as many of the elements each."""
    return (elements > threads) & (elements % threads != 0)


def launch_limits(
    at: Evaluation, stages: Array, threads: Array, hardware: Hardware
) -> dict[str, Rule | Limit]:
    """What a launch asks of threads, grid and the trips of its pipelines."""
    trips = [at(loop.trips) for loop in at.forms.loops if loop.is_pipelined]
    short = _never()
    for count in trips:
        short = short | (stages > count)
    return {
        "threads": Limit(
            threads,
            np.full((1, 1), float(hardware.threads_per_block)),
            "a threadblock has {used} threads of at most {limit}",
        ),
        "grid": Limit(
            _grid(at),
            np.full((1, 1), float(GRID_LIMIT)),
            "a dim of the grid has {used} threadblocks of at most {limit}",
        ),
        "stages": Rule(short, "a loop has fewer steps than its pipeline has stages"),
    }


def register_parts(at: Evaluation) -> Parts:
    """The tiles in registers, with their bytes."""
    tiles = dict.fromkeys(tile for point in at.forms.points for tile, _ in point)
    return [(t.origin, at(t.elements) * t.element_bytes) for t in tiles]


def shared_parts(at: Evaluation) -> Parts:
    """The tiles in SMEM, with their bytes."""
    return [(buffer.origin, at.bytes(buffer)) for buffer in at.forms.buffers]


def _grid(at: Evaluation) -> Array:
    """The larger of the grid's second and third dims; what is left is in the third."""
    extents = [at(extent) for _, extent in reversed(at.forms.extents)]
    second = extents[1] if len(extents) > 1 else np.ones((1, 1))
    third = np.ones((1, 1))
    for extent in extents[2:]:
        third = third * extent
    return np.maximum(second, third)


def _never() -> Mask:
    return np.zeros((1, 1), bool)
