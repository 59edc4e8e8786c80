"""
The text of the form `pipelined`.

An `iter` and a `wrap` macro a level (paper, section 6.2): `iter_n` is the body of a
level and gets slices of GMEM tensors and tiles; `wrap_n` allocates the level's tiles,
loops, and slices. The function's `T.prim_func` is the wrap of the parallel level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import StringAttr, f32
from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.kernel import KernelOp, YieldOp
from cleave.dialects.itgraph.level import Level, memory_of
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.lowering.tilelang.body import Body
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile
from cleave.lowering.tilelang.forms.grid import descending, grid_of
from cleave.lowering.tilelang.forms.level_text import LevelText
from cleave.lowering.tilelang.kernel import KernelEmitter
from cleave.lowering.tilelang.text import EmissionError, call_lines, indented
from cleave.passes.cost.columns import summed_by_columns

COMPUTING_THREADS = 256
PRODUCER_REGISTERS = 40
CONSUMER_REGISTERS = 232
"""How two warpgroups that compute and one that loads share 65536 registers."""


@dataclass
class PipelinedEmitter(KernelEmitter):
    """Writes one kernel in the form `pipelined`."""

    divides_warps: bool = True
    """Whether some warps load for the others."""
    uses_wgmma: bool = True
    """Whether the tensor cores read SMEM themselves."""
    levels: int = 0
    """How many levels have been numbered."""
    loads_in_bulk: bool = False
    """Whether some tile in SMEM can be loaded by TMA."""

    def lines(self) -> list[str]:
        return self.function(self._prim_func(self._level(self.kernel)))

    # Levels

    def _level(
        self, level: Level, columns: dict[SSAValue, Buffer] | None = None
    ) -> LevelText:
        """The iter macro of a level (and all of its inner levels), and its slices."""
        number = self.levels
        self.levels += 1
        body = Body(
            level.body.block,
            self.spelling,
            self.names,
            self.warps,
            self.places,
            columns=columns or {},
        )
        text = LevelText(number, body, {})
        for argument, view in zip(level.view_arguments, level.views, strict=True):
            if view.gathers:
                raise EmissionError(
                    f"'{level.name}' op: gathers have no TileLang form yet"
                )
            self._open_view(argument, view.source, view.tmap, text)
        for op in level.body.block.ops:
            if isinstance(op, LoopOp):
                self._inner_loop(op, body)
            elif isinstance(op, NextOp):
                body.finish(op)
            elif isinstance(op, YieldOp):
                self._store(text)
            else:
                body.emit(cast(Operator, op))
        if isinstance(level, LoopOp) and self.divides_warps:
            text.end_reads(self.uses_wgmma)
        self._iter_macro(level, text)
        return text

    def _open_view(
        self, argument: SSAValue, source: SSAValue, tmap: TMap, text: LevelText
    ) -> None:
        """Load a view, or make it a part of what its source already is."""
        place = self.view(argument, source, tmap)
        memory = memory_of(argument) or Memory("gmem")
        if isinstance(place, Buffer) or memory.space == "gmem":
            self.places[argument] = place
            return
        buffer = text.body.new_buffer(argument, memory, argument in self.as_tf32)
        text.body.uses[buffer.name] = None
        slice_name = self.names.fresh(f"g_{buffer.name}")
        text.slices[slice_name] = place
        options = self._copy_options(place, buffer)
        if memory.space == "smem":
            text.loaded.append(place)
            if not options:
                self.loads_in_bulk = True
                text.loaded_in_bulk.append(buffer)
        text.body.lines.append(f"T.copy({slice_name}, {buffer.name}{options})")

    def _inner_loop(self, loop: LoopOp, body: Body) -> None:
        if loop.lets:
            raise EmissionError("'itgraph.loop' op: lets have no TileLang form yet")
        columns: dict[SSAValue, tuple[Operator, Buffer]] = {}
        for index, (state, argument, result) in enumerate(
            zip(loop.states, loop.state_arguments, loop.results, strict=True)
        ):
            memory = memory_of(argument) or Memory("rmem", "linear")
            if (
                reduction := summed_by_columns(loop, index, self._resolved)
            ) is not None:
                buffer = body.new_buffer(result, memory)
                columns[argument] = reduction, self._columns(reduction, buffer, body)
            else:
                buffer = self.initialized(state.initial, result, memory, body)
            self.places[argument] = self.places[result] = buffer
        text = self._level(loop, {state: held for state, (_, held) in columns.items()})
        params = self._wrap_macro(loop, text)
        for name in params:
            body.uses[name] = None
        body.lines += call_lines(f"wrap_{text.number}(", params)
        for state, (reduction, held) in columns.items():
            body.sum_columns(reduction, held, cast(Buffer, self.places[state]))

    def _resolved(self, value: SSAValue) -> tuple[Dim, ...]:
        dims = cast(TensorType, value.type).dims
        return tuple(map(self.context.facts.resolve, dims))

    def _columns(self, reduction: Operator, target: Buffer, body: Body) -> Buffer:
        """A buffer of zeros like the tiles that a reduction is given."""
        dims = cast(TensorType, reduction.operands[0].type).dims
        name = self.names.fresh(f"{target.name}_columns")
        memory = Memory("rmem", "fragment")
        held = Buffer(name, dims, self.spelling.kept(dims), f32, memory)
        body.allocations.append(held)
        body.uses[name] = None
        body.lines.append(f"T.fill({name}, 0.0)")
        return held

    def _store(self, text: LevelText) -> None:
        for tile, target in self.output_tiles():
            slice_name = self.names.fresh(f"g_{target.tensor}")
            text.slices[slice_name] = target
            buffer = text.body.buffer_of(tile)
            if isinstance(tile.owner, Copy) and buffer.memory.layout == "swizzled":
                self.staged.append(buffer)
            options = self._copy_options(target, buffer)
            text.body.lines.append(f"T.copy({buffer.region}, {slice_name}{options})")

    def _copy_options(self, tile: GlobalTile, buffer: Buffer) -> str:
        """What TileLang has to be told of a copy between GMEM and a buffer."""
        in_bulk = buffer.memory.space != "smem" or tile.moves_in_bulk(self.spelling)
        return "" if in_bulk else ", disable_tma=True"

    # Macros

    def _iter_macro(self, level: Level, text: LevelText) -> None:
        params = text.iter_params
        over = ", ".join(level.own_names)
        is_kernel = isinstance(level, KernelOp)
        what = "What a threadblock does" if is_kernel else f"One step over {over}"
        self.macros += [
            f"# {what}.",
            "@T.macro",
            *call_lines(f"def iter_{text.number}(", params, "):"),
            *indented(text.body.lines),
            "",
        ]

    def _wrap_macro(self, loop: LoopOp, text: LevelText) -> list[str]:
        """Write the wrap macro of a loop; its parameters."""
        range_ = loop.range
        spell = self.spelling
        iterator = spell.names[range_.iterator]
        call = call_lines(f"iter_{text.number}(", text.iter_args(spell))
        header = self._loop_header(loop, iterator, text)
        local = {buffer.name for buffer in text.body.allocations} | {iterator}
        slices = text.slices.values()
        used: dict[str, None] = dict.fromkeys(tile.tensor for tile in slices)
        for name in text.body.uses:
            used[name] = None
        dims = [range_.lo, range_.hi, *(d for t in slices for d in t.tmap.offsets)]
        for name in sorted({name for dim in dims for name in spell.local_names(dim)}):
            used[name] = None
        params = [name for name in used if name not in local]
        self.macros += [
            "@T.macro",
            *call_lines(f"def wrap_{text.number}(", params, "):"),
            *indented([buffer.allocation(spell) for buffer in text.body.allocations]),
            *indented(header),
            *indented(call, 2),
            "",
        ]
        return params

    def _loop_header(self, loop: LoopOp, iterator: str, text: LevelText) -> list[str]:
        lo, hi = self.spelling.dim(loop.range.lo), self.spelling.dim(loop.range.hi)
        bounds = hi if lo == "0" else f"{lo}, {hi}"
        is_innermost = not any(isinstance(op, LoopOp) for op in loop.body.block.ops)
        stages = self.kernel.stages.value.data if self.kernel.stages else 0
        runs_ahead = is_innermost and stages > 0 and bool(loop.sources)
        if runs_ahead and not self._loads_odd_rows(text):
            args = [bounds, f"num_stages={stages}"]
            if self._waits_vary(loop, text) and stages > 1:
                args.append('annotations={"pragma_unroll_explicit": True}')
            return call_lines(f"for {iterator} in T.Pipelined(", args, "):")
        return [f"for {iterator} in T.serial({bounds}):"]

    def _waits_vary(self, loop: LoopOp, text: LevelText) -> bool:
        """
        Whether the last steps of a loop wait for other copies than those before do, and
        TileLang 0.1.15, which does not unroll them where an iterator says how many
        steps there are, refuses that ("Downcast from tirx.Sub to ir.IntImm failed").
        What TMA copies has barriers instead.
        """
        spell, range_ = self.spelling, loop.range
        varies = spell.local_names(range_.lo) or spell.local_names(range_.hi)
        places = [self.places.get(argument) for argument in loop.view_arguments]
        return bool(varies) and any(
            isinstance(place, Buffer)
            and place.memory.space == "smem"
            and place not in text.loaded_in_bulk
            for place in places
        )

    def _loads_odd_rows(self, text: LevelText) -> bool:
        """
        Whether a tile has rows that begin between words of 4 bytes, which TileLang
        0.1.15 copies by `cp.async` all the same, and then refuses to, where a loop has
        a pipeline; not in kernels with matmuls, whose copies it does not take to
        vectors.
        """
        operators = (op for op in self.kernel.walk() if isinstance(op, Operator))
        if any(op.ON_TENSOR_CORES for op in operators):
            return False
        return not all(tile.has_whole_words(self.spelling) for tile in text.loaded)

    def _prim_func(self, text: LevelText) -> list[str]:
        kernel = self.kernel
        l2_bytes = self.context.hardware.l2_bytes
        grid = grid_of(kernel, self.spelling, self.names, l2_bytes)
        inside = self.allocations(text.body.allocations)
        if kernel.swizzle and not descending(kernel):
            inside.append(f"T.use_swizzle({kernel.swizzle.value.data})")
        if kernel.attributes.get("specialization") == StringAttr("role-based"):
            # Else TileLang shares the registers out among threadblocks that never come.
            inside.append("T.annotate_min_blocks_per_sm(1)")
        elif self._loads_need_registers:
            inside.append(f"T.annotate_producer_reg_dealloc({PRODUCER_REGISTERS})")
            inside.append(f"T.annotate_consumer_reg_alloc({CONSUMER_REGISTERS})")
        inside += grid.decode
        inside += call_lines(f"iter_{text.number}(", text.iter_args(self.spelling))
        threads = kernel.threads.value.data if kernel.threads else 128
        return self.prim_func(grid.extents[::-1], threads, grid.variables, inside)

    @property
    def _loads_need_registers(self) -> bool:
        """
        Whether the bounds of the loop, which the loading warps work out as well, take
        more than the 24 registers that TileLang leaves each of their threads.
        """
        kernel = self.kernel
        begins_late = any(
            isinstance(op, LoopOp) and op.range.lo != 0 for op in kernel.walk()
        )
        planner = kernel.attributes.get("specialization")
        threads = kernel.threads.value.data if kernel.threads else 0
        is_divided = planner == StringAttr("single-loop")
        return begins_late and is_divided and threads == COMPUTING_THREADS
