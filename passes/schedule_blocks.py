"""`schedule-blocks`: partition the outputs of a graph over threadblocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, SymbolicDim, ceildiv, symbol
from cleave.dialects.itgraph.kernel import KernelOp, YieldOp
from cleave.dialects.itgraph.parts import Output, View, entry_block
from cleave.dialects.itgraph.plan import PlanOp, ReturnOp
from cleave.dialects.itgraph.tmap import Range, TMap
from cleave.dialects.tensor import TensorType
from cleave.passes.partitioning.splits import splits_of
from cleave.passes.scheduling.propagation import (
    AxisRange,
    NoTileError,
    operand_tmaps,
)
from cleave.passes.scheduling.tails import masked_operands
from cleave.passes.scheduling.tiles import TileSizes, fresh_name, parse_tiles


@dataclass(frozen=True)
class ScheduleBlocksPass(ModulePass):
    """
    Turn each graph into a plan of one kernel whose iterations compute disjoint tiles of
    the outputs (paper section 5.3, inter-threadblock scheduling).

    `tile` gives the tile size of each output dim that is divided, by its symbol; other
    dims stay whole. A dim such as `G * M` goes by the one symbol in it that has a tile
    and is no output dim itself. A tile at least as large as its dim pads it, also where
    it is only reduced (`D=80` for heads of 72: loads give zeros beyond the end). Of the
    parts of a split every tile has one, which is all that it can have.

    The tile of every other value follows from the operators' tensor expressions. A
    computed value of which two paths demand different tiles is refused; inputs and
    generators may be tiled in several ways.

    With `only`, just the graph of that name is scheduled.

    Before:
        algebra.graph @scores [M, L, D]
            (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
            -> (!algebra.tensor<[M, L], f32>) {
          %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[M, L], f32>
          algebra.return %s
        }
    After `schedule-blocks{tile="M=128 L=64"}`:
        itgraph.plan @scores [M, L, D, BM, BL] where [BM = 128, BL = 64]
            (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
            -> (!algebra.tensor<[M, L], f32>) {
          %s = itgraph.kernel (i_M = 0 to M ceildiv BM, i_L = 0 to L ceildiv BL)
              ins (%tq = %q[i_M * BM, 0] tile [BM, D],
                   %tk = %k[i_L * BL, 0] tile [BL, D])
              outs ([i_M * BM, i_L * BL] of !algebra.tensor<[M, L], f32>) {
            %ts = algebra.matmul %tq, %tk transpose_rhs : !algebra.tensor<[BM, BL], f32>
            itgraph.yield %ts
          }
          itgraph.return %s
        }
    """

    name = "schedule-blocks"

    tile: str = ""
    only: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tiles = parse_tiles(self.tile)
        # Every graph is scheduled before one is replaced: a failure changes nothing.
        graphs = [
            graph
            for graph in op.ops
            if isinstance(graph, GraphOp) and self.only in (None, graph.graph_name)
        ]
        if self.only is not None and not graphs:
            raise PassFailedException(f"there is no graph @{self.only}")
        plans = [schedule_blocks(graph, tiles) for graph in graphs]
        for graph, plan in zip(graphs, plans, strict=True):
            Rewriter.replace_op(graph, plan)


def schedule_blocks(graph: GraphOp, tiles: dict[str, int | None]) -> PlanOp:
    """
    A plan of one kernel that computes `graph`.

    Raises:
        PassFailedException: no output dim has that tile's symbol, or no tiling exists.
    """
    try:
        plan = _BlockSchedule(graph, {**_parts(graph), **tiles}).build()
        plan.verify()
    except (NoTileError, VerifyException) as error:
        raise PassFailedException(str(error)) from error
    return plan


def divides_outputs(graph: GraphOp, tiles: dict[str, int | None]) -> bool:
    """Whether `schedule_blocks` would make a plan; it takes longer."""
    schedule = _BlockSchedule(graph, {**_parts(graph), **tiles})
    try:
        _, tmaps = schedule.demand_all()
    except (NoTileError, VerifyException, PassFailedException):
        return False
    return all(
        range_.iterator in tmap.names for range_ in schedule.ranges for tmap in tmaps
    )


def _parts(graph: GraphOp) -> dict[str, int | None]:
    """The tiles of output dims that are the count of a split."""
    counts = {
        str(cast(TensorType, value.type).dims[parts])
        for value, parts, _ in splits_of(graph)
    }
    dims = {str(dim) for type_ in graph.output_types for dim in type_.dims}
    return {name: 1 for name in graph.symbol_names if name in counts & dims}


@dataclass
class _BlockSchedule:
    """The state of scheduling one graph."""

    graph: GraphOp
    tiles: dict[str, int | None]
    alone: set[str] = field(default_factory=set[str])
    """Symbols that are output dims themselves, and not only in an expression."""
    ranges: list[Range] = field(default_factory=list[Range])
    demands: dict[SSAValue, list[TMap]] = field(
        default_factory=dict[SSAValue, list[TMap]]
    )

    def __post_init__(self) -> None:
        self.sizes = TileSizes(self.tiles, set(self.graph.symbol_names))
        self.leading = self._leading_views()
        self.trailing = self._trailing_views()

    def build(self) -> PlanOp:
        return self._plan(*self.demand_all())

    def demand_all(self) -> tuple[list[SSAValue], list[TMap]]:
        """Find the tiles of all values; the outputs of the kernel and their tiles."""
        returned = list(self.graph.return_op.values)
        self._require_roundings(returned)
        outputs = list(dict.fromkeys(self._computed(value) for value in returned))
        types = [cast(TensorType, value.type) for value in outputs]
        self.alone = {str(dim) for type_ in types for dim in type_.dims}
        for name in self.tiles:
            self._require_output_dim(name, outputs)
        tmaps = [self._output_tmap(cast(TensorType, v.type).dims) for v in outputs]
        for value, tmap in zip(outputs, tmaps, strict=True):
            self._demand(value, tmap, "the output")
        for op in reversed(list(self.graph.operators)):
            if op not in self.leading and op not in self.trailing:
                self._propagate(op)
        return outputs, tmaps

    # Views at plan level

    def _leading_views(self) -> set[Operator]:
        """Views of inputs that cost nothing in memory: they stay outside the kernel."""
        found: set[Operator] = set()
        for op in self.graph.operators:
            owner = op.operands[0].owner if op.KEEPS_ORDER else None
            if isinstance(owner, Block) or owner in found:
                found.add(op)
        return found

    def _trailing_views(self) -> set[Operator]:
        """Views through which outputs leave, likewise."""
        found: set[Operator] = set()
        for op in reversed(list(self.graph.operators)):
            users = {use.operation for use in op.results[0].uses}
            leaves = users and users <= found | {self.graph.return_op}
            if op.KEEPS_ORDER and op not in self.leading and leaves:
                found.add(op)
        return found

    def _computed(self, value: SSAValue) -> SSAValue:
        """What a returned value is a view of, inside the kernel."""
        while value.owner in self.trailing:
            value = cast(Operator, value.owner).operands[0]
        return value

    # Output tiles

    def _require_roundings(self, returned: Sequence[SSAValue]) -> None:
        for position, (value, declared) in enumerate(
            zip(returned, self.graph.output_types, strict=True)
        ):
            if value.type != declared:
                raise PassFailedException(
                    f"@{self.graph.graph_name} returns {value.type} as result "
                    f"{position}, which is {declared}; insert-casts rounds it"
                )

    def _require_output_dim(self, name: str, outputs: Sequence[SSAValue]) -> None:
        where = f"tile for '{name}'"
        declared = self.graph.symbol_names
        if name not in declared:
            raise PassFailedException(
                f"{where}, which is no symbol of @{self.graph.graph_name} "
                f"(symbols: {', '.join(declared) or 'none'})"
            )
        types = [cast(TensorType, value.type) for value in outputs]
        divided = {self._tile_name(dim) for type_ in types for dim in type_.dims}
        if name not in divided and not self._pads(symbol(name)):
            shapes = ", ".join(str(type_) for type_ in types)
            raise PassFailedException(
                f"{where}, but no output dim of @{self.graph.graph_name} is {name} "
                f"(outputs: {shapes})"
            )

    def _tile_name(self, dim: Dim) -> str | None:
        """The symbol by whose tile size a dim goes."""
        name = str(dim)
        if not isinstance(dim, SymbolicDim) or name in self.tiles:
            return name if name in self.tiles else None
        named = sorted((dim.names & self.tiles.keys()) - self.alone)
        if len(named) > 1:
            raise PassFailedException(
                f"dim {dim} of @{self.graph.graph_name} has a tile by both "
                f"{named[0]} and {named[1]}"
            )
        return named[0] if named else None

    def _pads(self, dim: Dim) -> bool:
        """Whether a dim is at most its tile size, which then takes its place."""
        name = self._tile_name(dim)
        size = None if name is None else self.tiles[name]
        return size is not None and self.graph.facts.at_most(dim, size)

    def _padded(self, dim: Dim) -> Dim:
        name = self._tile_name(dim)
        return self.sizes.of(name) if name is not None and self._pads(dim) else dim

    def _ranges(self, op: Operator) -> list[AxisRange]:
        """All of every reduction axis, padded."""
        return [AxisRange(0, self._padded(dim)) for dim in op.expression.reduced]

    def _output_tmap(self, dims: Sequence[Dim]) -> TMap:
        """Disjoint tiles in row-major order; each divided dim is one iterator."""
        offsets: list[Dim] = []
        tile: list[Dim] = []
        used: set[str] = set()
        for dim in dims:
            name = self._tile_name(dim)
            if name is None:
                offsets.append(0)
                tile.append(dim)
                continue
            size = self.sizes.of(name)
            if self._pads(dim):
                offsets.append(0)
                tile.append(size)
                continue
            iterator = fresh_name(f"i_{name}", used | self.sizes.taken)
            used.add(iterator)
            extent = Range(iterator, 0, ceildiv(dim, size))
            if extent not in self.ranges:
                self.ranges.append(extent)
            offsets.append(symbol(iterator) * size)
            tile.append(size)
        return TMap(tuple(offsets), tuple(tile))

    # Tiles of everything else

    def _demand(self, value: SSAValue, tmap: TMap, consumer: str) -> None:
        known = self.demands.setdefault(value, [])
        if tmap in known:
            return
        if known and not self._is_leaf(value):
            name = f"%{value.name_hint}" if value.name_hint else "a computed value"
            raise PassFailedException(
                f"two paths disagree on the tile of {name} "
                f"('{cast(Operator, value.owner).name}' op): {_text(known[0])} and, "
                f"for {consumer}, {_text(tmap)}"
            )
        known.append(tmap)

    def _is_leaf(self, value: SSAValue) -> bool:
        """Inputs, generators and their views can be had in any number of tiles."""
        owner = value.owner
        if isinstance(owner, Block):
            return True
        op = cast(Operator, owner)
        return (op.IS_VIEW or not op.operands) and all(map(self._is_leaf, op.operands))

    def _propagate(self, op: Operator) -> None:
        for tmap in self.demands.get(op.results[0], ()):
            try:
                tmaps = operand_tmaps(op.expression, tmap, self._ranges(op))
            except NoTileError as error:
                raise NoTileError(f"'{op.name}' op: {error}") from error
            for operand, needed in zip(op.operands, tmaps, strict=True):
                self._demand(operand, needed, f"'{op.name}' op")

    # The plan

    def _plan(self, outputs: Sequence[SSAValue], tmaps: Sequence[TMap]) -> PlanOp:
        graph = self.graph
        block = Block(arg_types=graph.input_types)
        at_plan: dict[SSAValue, SSAValue] = {}
        for argument, new in zip(graph.inputs, block.args, strict=True):
            new.name_hint = argument.name_hint
            at_plan[argument] = new
        for op in graph.operators:
            if op in self.leading:
                at_plan[op.results[0]] = _copied(op, at_plan, block)
        kernel = self._kernel(outputs, tmaps, at_plan)
        block.add_op(kernel)
        at_plan.update(zip(outputs, kernel.results, strict=True))
        for op in graph.operators:
            if op in self.trailing:
                at_plan[op.results[0]] = _copied(op, at_plan, block)
        block.add_op(ReturnOp([at_plan[value] for value in graph.return_op.values]))
        return PlanOp(
            graph.graph_name,
            [*graph.symbol_names, *self.sizes.symbols],
            [*(fact.data for fact in graph.where), *self.sizes.facts],
            graph.output_types,
            block,
            attributes=graph.attributes,
        )

    def _kernel(
        self,
        outputs: Sequence[SSAValue],
        tmaps: Sequence[TMap],
        at_plan: dict[SSAValue, SSAValue],
    ) -> KernelOp:
        sliced = [
            (value, tmap) for value in at_plan for tmap in self.demands.get(value, ())
        ]
        views = [
            View(at_plan[value], tmap, name=_tile_name(value, position))
            for position, (value, tmap) in enumerate(sliced)
        ]
        body = entry_block(views)
        tiles: dict[tuple[SSAValue, TMap], SSAValue] = dict(
            zip(sliced, body.args, strict=True)
        )
        for op in self.graph.operators:
            if op not in self.leading and op not in self.trailing:
                self._compute(op, tiles, body)
        body.add_op(YieldOp([tiles[v, t] for v, t in zip(outputs, tmaps, strict=True)]))
        outs = [
            Output(tmap.offsets, cast(TensorType, value.type))
            for value, tmap in zip(outputs, tmaps, strict=True)
        ]
        kernel = KernelOp(self.ranges, views, outs, body)
        for value, result in zip(outputs, kernel.results, strict=True):
            result.name_hint = value.name_hint
        return kernel

    def _compute(
        self, op: Operator, tiles: dict[tuple[SSAValue, TMap], SSAValue], body: Block
    ) -> None:
        (result,) = op.results
        for tmap in self.demands.get(result, ()):
            needed = operand_tmaps(op.expression, tmap, self._ranges(op))
            pairs = zip(op.operands, needed, strict=True)
            operands = [tiles[operand, part] for operand, part in pairs]
            for dim in op.expression.reduced:
                if self._padded(dim) != dim:
                    operands = masked_operands(op, operands, dim, body, _loads_zeros)
            type_ = op.result_type.with_dims(tmap.tile)
            tile_op = op.at_tile(operands, type_, tmap.offsets)
            body.add_op(tile_op)
            tile_op.results[0].name_hint = result.name_hint
            tiles[result, tmap] = tile_op.results[0]


def _loads_zeros(value: BlockArgument, dim: int) -> bool:
    """Views of a kernel are of tensors in GMEM, whose loads give zeros at the end."""
    return True


def _copied(op: Operator, values: dict[SSAValue, SSAValue], block: Block) -> SSAValue:
    copy = op.clone(value_mapper=dict(values))
    block.add_op(copy)
    copy.results[0].name_hint = op.results[0].name_hint
    return copy.results[0]


def _tile_name(value: SSAValue, position: int) -> str:
    if value.name_hint:
        return f"t{value.name_hint}"
    return f"t{value.index if isinstance(value, BlockArgument) else position}"


def _text(tmap: TMap) -> str:
    offsets = ", ".join(str(dim) for dim in tmap.offsets)
    tile = ", ".join(str(dim) for dim in tmap.tile)
    return f"[{offsets}] tile [{tile}]"
