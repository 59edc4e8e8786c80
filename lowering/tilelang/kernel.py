"""
One kernel as a Python function: an `iter` and a `wrap` macro a level (paper, 6.2).

`iter_n` is the body of a level and gets slices of GMEM tensors and tiles; `wrap_n`
allocates the level's tiles, loops, and slices. The function's `T.prim_func` is the wrap
of the parallel level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp, YieldOp
from cleave.dialects.itgraph.level import Level, memory_of
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.lowering.tilelang.body import Body, Place
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile, Spelling
from cleave.lowering.tilelang.text import EmissionError, Names, call_lines, indented

MAX_GRID_DIMS = 3


@dataclass(frozen=True)
class Parameter:
    """A tensor in GMEM that a kernel reads or writes, without dims of size 1."""

    name: str
    value: SSAValue


@dataclass
class KernelText:
    """The generated function of one kernel."""

    function: str
    parameters: list[Parameter]
    lines: list[str]


@dataclass
class KernelEmitter:
    """Writes one kernel; `emit` gives its text."""

    kernel: KernelOp
    function: str
    facts: Facts
    symbol_names: Mapping[str, str]
    tensor_names: Mapping[SSAValue, str]
    dynamic: Sequence[str]
    """Symbols without a value, which the kernel takes from its arguments' shapes."""
    names: Names = field(default_factory=Names)
    macros: list[str] = field(default_factory=list[str])
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    staged: list[Buffer] = field(default_factory=list[Buffer])
    """Tiles that are stored from SMEM and want a layout of their own."""
    levels: int = 0

    def emit(self) -> KernelText:
        kernel = self.kernel
        self.names.taken |= set(self.symbol_names.values())
        self.names.taken |= {self.function, "kernel"}
        parameters = self._parameters()
        self.names.taken |= {parameter.name for parameter in parameters}
        # Levels side by side have iterators of one name, and so they are spelled.
        names = dict.fromkeys(name for op in _levels(kernel) for name in op.own_names)
        iterators = {name: self.names.fresh(name) for name in names}
        self.spelling = Spelling(self.facts, self.symbol_names, iterators)
        body = self._level(kernel)
        lines = [f'{name} = T.dynamic("{name}")' for name in self.dynamic]
        lines += [*self.macros, *self._prim_func(parameters, body)]
        text = [f"def {self.function}():", *indented([*lines, "return kernel"])]
        return KernelText(self.function, parameters, text)

    # Parameters

    def _parameters(self) -> list[Parameter]:
        """Tensors in the order of first use: what is read, then what is written."""
        if self.kernel.lets:
            raise EmissionError("'itgraph.kernel' op: lets have no TileLang form yet")
        values = [*dict.fromkeys(self.kernel.sources), *self.kernel.results]
        return [Parameter(self.tensor_names[value], value) for value in values]

    def _tensor_type(self, value: SSAValue) -> str:
        type_ = cast(TensorType, value.type)
        dtype = dtype_name(type_.element_type)
        return f'T.Tensor({self.spelling.shape(type_.dims)}, "{dtype}")'

    # Levels

    @property
    def _warps(self) -> str:
        attribute = self.kernel.attributes.get("warps")
        return attribute.data if isinstance(attribute, StringAttr) else "rows"

    def _level(self, level: Level) -> _LevelText:
        """The iter macro of a level (and all of its inner levels), and its slices."""
        number = self.levels
        self.levels += 1
        body = Body(
            level.body.block, self.spelling, self.names, self._warps, self.places
        )
        text = _LevelText(number, body, {})
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
                self._store(cast(KernelOp, level), text)
            else:
                body.emit(cast(Operator, op))
        self._iter_macro(level, text)
        return text

    def _open_view(
        self, argument: SSAValue, source: SSAValue, tmap: TMap, text: _LevelText
    ) -> None:
        """Load a view, or make it a part of what its source already is."""
        held = self.places.get(source)
        if held is None:
            type_ = cast(TensorType, source.type)
            whole = TMap.whole(type_.dims)
            name = self.tensor_names[source]
            held = GlobalTile(name, type_.dims, whole, type_.element_type)
        if isinstance(held, Buffer):
            if held.memory.space != "smem":
                raise EmissionError(f"a tile in {held.memory} cannot be sliced")
            self.places[argument] = held.part(tmap, self.spelling)
            return
        tile = GlobalTile(held.tensor, held.dims, held.tmap.then(tmap), held.element)
        memory = memory_of(argument) or Memory("gmem")
        if memory.space == "gmem":
            self.places[argument] = tile
            return
        buffer = text.body.new_buffer(argument, memory)
        text.body.uses[buffer.name] = None
        slice_name = self.names.fresh(f"g_{buffer.name}")
        text.slices[slice_name] = tile
        text.body.lines.append(f"T.copy({slice_name}, {buffer.name})")

    def _inner_loop(self, loop: LoopOp, body: Body) -> None:
        if loop.lets:
            raise EmissionError("'itgraph.loop' op: lets have no TileLang form yet")
        for state, argument, result in zip(
            loop.states, loop.state_arguments, loop.results, strict=True
        ):
            memory = memory_of(argument) or Memory("rmem", "linear")
            buffer = self._initialized(state.initial, result, memory, body)
            self.places[argument] = self.places[result] = buffer
        text = self._level(loop)
        params = self._wrap_macro(loop, text)
        for name in params:
            body.uses[name] = None
        body.lines += call_lines(f"wrap_{text.number}(", params)

    def _initialized(
        self, initial: SSAValue, result: SSAValue, memory: Memory, body: Body
    ) -> Buffer:
        """The buffer of a state, holding its initial value."""
        place = self.places.get(initial)
        if isinstance(place, Buffer) and initial.has_one_use():
            return place  # the loop continues what an earlier one has built up
        buffer = body.new_buffer(result, memory)
        body.uses[buffer.name] = None
        owner = initial.owner
        if isinstance(owner, Constant):
            value = owner.emit((), (), owner.params)
            body.lines.append(f"T.fill({buffer.name}, {value})")
        else:
            body.lines.append(
                f"T.copy({body.buffer_of(initial).region}, {buffer.name})"
            )
        return buffer

    def _store(self, kernel: KernelOp, text: _LevelText) -> None:
        for result, out, tile, tmap in zip(
            kernel.results,
            kernel.outs,
            kernel.yielded,
            kernel.output_tmaps,
            strict=True,
        ):
            name = self.tensor_names[result]
            target = GlobalTile(name, out.type.dims, tmap, out.type.element_type)
            slice_name = self.names.fresh(f"g_{name}")
            text.slices[slice_name] = target
            buffer = text.body.buffer_of(tile)
            if isinstance(tile.owner, Copy) and buffer.memory.layout == "swizzled":
                self.staged.append(buffer)
            text.body.lines.append(f"T.copy({buffer.region}, {slice_name})")

    # Macros

    def _iter_macro(self, level: Level, text: _LevelText) -> None:
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

    def _wrap_macro(self, loop: LoopOp, text: _LevelText) -> list[str]:
        """Write the wrap macro of a loop; its parameters."""
        range_ = loop.range
        spell = self.spelling
        iterator = spell.names[range_.iterator]
        call = call_lines(f"iter_{text.number}(", text.iter_args(spell))
        header = self._loop_header(loop, iterator)
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
            *indented([header]),
            *indented(call, 2),
            "",
        ]
        return params

    def _loop_header(self, loop: LoopOp, iterator: str) -> str:
        lo, hi = self.spelling.dim(loop.range.lo), self.spelling.dim(loop.range.hi)
        bounds = hi if lo == "0" else f"{lo}, {hi}"
        is_innermost = not any(isinstance(op, LoopOp) for op in loop.body.block.ops)
        stages = self.kernel.stages.value.data if self.kernel.stages else 0
        if is_innermost and stages and loop.sources:
            return f"for {iterator} in T.Pipelined({bounds}, num_stages={stages}):"
        return f"for {iterator} in T.serial({bounds}):"

    def _prim_func(
        self, parameters: Sequence[Parameter], text: _LevelText
    ) -> list[str]:
        spell, kernel = self.spelling, self.kernel
        signature = [f"{p.name}: {self._tensor_type(p.value)}," for p in parameters]
        decode, grid, variables = self._grid()
        threads = kernel.threads.value.data if kernel.threads else 128
        inside = [buffer.allocation(spell) for buffer in text.body.allocations]
        inside += [
            "T.annotate_layout("
            f"{{{b.name}: tilelang.layout.make_swizzled_layout({b.name})}})"
            for b in self.staged
        ]
        if kernel.swizzle:
            inside.append(f"T.use_swizzle({kernel.swizzle.value.data})")
        if self.kernel.attributes.get("specialization") == StringAttr("role-based"):
            # Else TileLang shares the registers out among threadblocks that never come.
            inside.append("T.annotate_min_blocks_per_sm(1)")
        if any("exp2(" in line for line in self.macros):
            inside.insert(0, "T.import_source(EXP2)")
        inside += decode
        inside += call_lines(f"iter_{text.number}(", text.iter_args(spell))
        launch = f"with T.Kernel({', '.join(grid)}, threads={threads}) as {variables}:"
        return [
            "@T.prim_func",
            "def kernel(",
            *indented(signature),
            "):",
            *indented([launch]),
            *indented(inside, 2),
            "",
        ]

    def _grid(self) -> tuple[list[str], list[str], str]:
        """
        Statements that decode the grid, its extents, its variables.

        The last iterator is the fastest, as in row-major order. What exceeds the three
        dims of a grid is folded into the slowest.
        """
        spell = self.spelling
        names = [spell.names[r.iterator] for r in self.kernel.ranges]
        extents = [spell.dim(r.hi) for r in self.kernel.ranges]
        if not names:
            return [], ["1"], self.names.fresh("block")
        decode: list[str] = []
        while len(extents) > MAX_GRID_DIMS:
            folded = self.names.fresh("block")
            decode += [
                f"{names[0]} = {folded} // {_factor(extents[1])}",
                f"{names[1]} = {folded} % {_factor(extents[1])}",
            ]
            names[:2] = [folded]
            extents[:2] = [f"{_factor(extents[0])} * {_factor(extents[1])}"]
        variables = ", ".join(reversed(names))
        decode.reverse()
        return decode, extents[::-1], f"({variables})" if len(names) > 1 else variables


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


@dataclass
class _LevelText:
    """A level while it is written: its body and the slices that its iter is given."""

    number: int
    body: Body
    slices: dict[str, GlobalTile]

    @property
    def _others(self) -> list[str]:
        return [name for name in self.body.uses if name not in self.slices]

    @property
    def iter_params(self) -> list[str]:
        return [*self.slices, *self._others]

    def iter_args(self, spelling: Spelling) -> list[str]:
        slices = [tile.slice(spelling) for tile in self.slices.values()]
        return [*slices, *self._others]


def _levels(kernel: KernelOp) -> list[Level]:
    return [op for op in kernel.walk() if isinstance(op, Level)]
