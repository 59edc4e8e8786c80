"""
What every kernel form writes alike: the function, its tensors, their tiles, launches.

`cleave.lowering.tilelang.forms` has what forms write differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, facts_at
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.lowering.hardware import Hardware
from cleave.lowering.plan import PassConfig, Requirement
from cleave.lowering.tilelang.body import Body, Place
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile, Spelling, dtype_text
from cleave.lowering.tilelang.externals import called
from cleave.lowering.tilelang.text import EmissionError, Names, indented


@dataclass(frozen=True)
class Parameter:
    """
    A tensor in GMEM that a kernel reads or writes; `axes` are those that the kernel
    sees: without dims of size 1, but for those that are padded.
    """

    name: str
    value: SSAValue
    axes: tuple[int, ...]


@dataclass(frozen=True)
class KernelText:
    """
    The generated function of one kernel, the settings under which TileLang compiles it,
    and the instructions without which it is not what was planned.
    """

    function: str
    parameters: Sequence[Parameter]
    lines: Sequence[str]
    pass_configs: Mapping[str, PassConfig]
    requires: Sequence[Requirement]


@dataclass(frozen=True)
class EmissionContext:
    """What a module has decided before one of its kernels is written."""

    function: str
    facts: Facts
    hardware: Hardware
    symbol_names: Mapping[str, str]
    tensor_names: Mapping[SSAValue, str]
    dynamic: Sequence[str]
    """Symbols without a value, which a kernel takes from its arguments' shapes."""


@dataclass
class KernelEmitter:
    """A kernel while it is written; each form has a subclass."""

    kernel: KernelOp
    context: EmissionContext
    names: Names = field(default_factory=Names)
    macros: list[str] = field(default_factory=list[str])
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    staged: list[Buffer] = field(default_factory=list[Buffer])
    """Tiles in SMEM that want a swizzled layout although no matmul reads them."""
    as_tf32: set[SSAValue] = field(default_factory=set[SSAValue])
    """Tensors and views whose elements tensor cores round to tf32."""
    spelling: Spelling = field(init=False)
    parameters: list[Parameter] = field(init=False)

    def __post_init__(self) -> None:
        context = self.context
        self.names.taken |= set(context.symbol_names.values())
        self.names.taken |= {context.function, "kernel"}
        self.parameters = self._parameters()
        self.names.taken |= {parameter.name for parameter in self.parameters}
        # Levels side by side have iterators of one name, and so they are spelled.
        levels = levels_in(self.kernel)
        names = dict.fromkeys(name for op in levels for name in op.own_names)
        iterators = {name: self.names.fresh(name) for name in names}
        self.spelling = Spelling(context.facts, context.symbol_names, iterators)

    # Tensors and tiles

    def _parameters(self) -> list[Parameter]:
        """Tensors in the order of first use: what is read, then what is written."""
        if self.kernel.lets:
            raise EmissionError("'itgraph.kernel' op: lets have no TileLang form yet")
        kernel = self.kernel
        tiles: dict[SSAValue, list[TMap]] = {}
        for view in kernel.views:
            tiles.setdefault(view.source, []).append(view.tmap)
        for result, tmap in zip(kernel.results, kernel.output_tmaps, strict=True):
            tiles[result] = [tmap]
        return [
            Parameter(self.context.tensor_names[value], value, self._axes(value, seen))
            for value, seen in tiles.items()
        ]

    def _axes(self, value: SSAValue, tiles: Sequence[TMap]) -> tuple[int, ...]:
        resolve = self.context.facts.resolve
        return tuple(
            axis
            for axis, dim in enumerate(cast(TensorType, value.type).dims)
            if resolve(dim) != 1 or any(resolve(t.tile[axis]) != 1 for t in tiles)
        )

    def _tensor_type(self, parameter: Parameter) -> str:
        type_ = cast(TensorType, parameter.value.type)
        dims = [type_.dims[axis] for axis in parameter.axes]
        text = ", ".join(map(self.spelling.dim, dims)) or "1"
        comma = "," if len(dims) <= 1 else ""
        dtype = dtype_text(type_.element_type, parameter.value in self.as_tf32)
        return f"T.Tensor(({text}{comma}), {dtype})"

    def _global_tile(self, value: SSAValue, tmap: TMap) -> GlobalTile:
        """A tile of a tensor that the kernel reads or writes."""
        (parameter,) = (p for p in self.parameters if p.value is value)
        type_ = cast(TensorType, value.type)
        return GlobalTile(
            parameter.name, type_.dims, parameter.axes, tmap, type_.element_type
        )

    def view(self, argument: SSAValue, source: SSAValue, tmap: TMap) -> Place:
        """A tile of a tensor in GMEM, or a part of a buffer."""
        held = self.places.get(source)
        if isinstance(held, Buffer):
            if held.memory.space != "smem":
                raise EmissionError(f"a tile in {held.memory} cannot be sliced")
            block = cast(BlockArgument, argument).block
            facts = facts_at(cast(Operation, block.last_op))
            return held.part(tmap, self.spelling, facts)
        if held is None:
            whole = TMap.whole(cast(TensorType, source.type).dims)
            held = self._global_tile(source, whole)
        return replace(held, tmap=held.tmap.then(tmap))

    def output_tiles(self) -> list[tuple[SSAValue, GlobalTile]]:
        """Each value that an iteration stores, and where."""
        kernel = self.kernel
        return [
            (tile, self._global_tile(result, tmap))
            for result, tile, tmap in zip(
                kernel.results, kernel.yielded, kernel.output_tmaps, strict=True
            )
        ]

    def initialized(
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

    @property
    def warps(self) -> str:
        """Which dim of matmul results the warpgroups divide, "rows" or "columns"."""
        attribute = self.kernel.attributes.get("warps")
        return attribute.data if isinstance(attribute, StringAttr) else "rows"

    # The function

    def function(self, prim_func: Sequence[str]) -> list[str]:
        """The function that returns the kernel: dynamic dims, macros, `T.prim_func`."""
        lines = [f'{name} = T.dynamic("{name}")' for name in self.context.dynamic]
        lines += [""] if lines else []
        lines += [*self.macros, *prim_func, "return kernel"]
        return [f"def {self.context.function}():", *indented(lines)]

    def prim_func(
        self, grid: Sequence[str], threads: int, variables: str, inside: Sequence[str]
    ) -> list[str]:
        """The `T.prim_func` with its launch and the statements inside of that."""
        signature = [f"{p.name}: {self._tensor_type(p)}," for p in self.parameters]
        statements = [*inside]
        if sources := [external.constant for external in called(self.macros)]:
            statements.insert(0, f"T.import_source({' + '.join(sources)})")
        return [
            "@T.prim_func",
            "def kernel(",
            *indented(signature),
            "):",
            f"    with T.Kernel({', '.join(grid)}, threads={threads}) as {variables}:",
            *indented(statements, 2),
            "",
        ]

    def allocations(self, buffers: Iterable[Buffer]) -> list[str]:
        """Statements that allocate buffers and say which of them are swizzled."""
        return [
            *(buffer.allocation(self.spelling) for buffer in buffers),
            *(
                "T.annotate_layout("
                f"{{{b.name}: tilelang.layout.make_swizzled_layout({b.name})}})"
                for b in self.staged
            ),
        ]


def levels_in(kernel: KernelOp) -> list[Level]:
    """The kernel and its loops, outermost first."""
    return [op for op in kernel.walk() if isinstance(op, Level)]


def factor(text: str) -> str:
    """A dim's text as a factor of a product."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"
