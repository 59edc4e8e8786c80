"""Reading the closed forms off a kernel whose memory is planned."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.operator import GUARDED, Operator
from cleave.dialects.dims import Dim, floordiv, names_of, substitute
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of, plan_of
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.passes.cost.closed_forms import (
    KernelForms,
    LevelForms,
    MatrixProduct,
    TileReduction,
    Transfer,
    product,
)
from cleave.passes.cost.columns import summed_by_columns
from cleave.passes.cost.liveness import (
    given_state,
    is_number,
    register_points,
    shared_buffers,
)
from cleave.passes.cost.origin import Origin
from cleave.passes.cost.preludes import prelude_tiles
from cleave.passes.cost.rows import rows_meet_tiles
from cleave.passes.cost.transfers import Extents, GlobalView, transfer
from cleave.passes.memory.tf32 import read_as_tf32, takes_wgmma

GUARDED_INSTRUCTIONS = 3
"""For each element of a tile that is written again in some iterations: in the others,
attention with tiles that do not divide takes as much longer on an H200."""

MAXIMUM_INSTRUCTIONS = 2
"""For each element of a row whose maximum what follows waits for, which GPUs compute at
half of their rate."""


def kernel_forms(kernel: KernelOp) -> KernelForms:
    """The closed forms of a kernel; what its plan binds is a number in them."""
    plan = cast(PlanOp, plan_of(kernel))
    return _Extraction(kernel, plan.facts).forms()


@dataclass
class _Extraction:
    kernel: KernelOp
    facts: Facts
    tensors: list[SSAValue] = field(default_factory=list[SSAValue])
    views: dict[SSAValue, GlobalView] = field(
        default_factory=dict[SSAValue, GlobalView]
    )
    """What is in GMEM, by the value that stands for it."""

    def __post_init__(self) -> None:
        self.as_tf32 = read_as_tf32(self.kernel)
        ranges = self.kernel.ranges
        self.extents = {r.iterator: self.facts.resolve(r.extent) for r in ranges}
        self.outer: dict[str, Dim] = dict(self.extents)
        """Iterations of the grid and of the loops around the one that is looked at."""

    def forms(self) -> KernelForms:
        kernel = self.kernel
        level = self._level(kernel, 1, Extents(self.extents, {}))
        stores = tuple(
            transfer(self._opened(result, tmap), Extents(self.extents, {}))
            for result, tmap in zip(kernel.results, kernel.output_tmaps, strict=True)
        )
        warps = kernel.attributes.get("warps")
        by_columns = isinstance(warps, StringAttr) and warps.data == "columns"
        return KernelForms(
            extents=tuple(self.extents.items()),
            level=level,
            stores=stores,
            tensor_bytes=tuple(self._bytes(tensor) for tensor in self.tensors),
            buffers=shared_buffers(kernel, self.resolved),
            points=register_points(kernel, self.resolved),
            prelude=prelude_tiles(kernel, self.resolved),
            warps="columns" if by_columns else "rows",
            rows_meet_tiles=rows_meet_tiles(kernel, self.resolved),
            rescales=any(_rescales(op) for op in kernel.walk()),
        )

    # Dims

    def resolved(self, value: SSAValue) -> tuple[Dim, ...]:
        """The dims of a value's type, with bound symbols as numbers."""
        return tuple(map(self.facts.resolve, cast(TensorType, value.type).dims))

    def elements(self, value: SSAValue) -> Dim:
        return product(self.resolved(value))

    def _bytes(self, value: SSAValue) -> Dim:
        return self.elements(value) * _width(value)

    def _trips(self, loop: LoopOp) -> Dim:
        """
        Iterations of a loop; of one that outer iterators bound, the mean of those a
        quarter and three quarters on their way: exact where it is linear, and close
        where a part of a split dim is wholly masked or wholly seen.
        """
        extent = self.facts.resolve(loop.range.extent)
        bounds = sorted(names_of(extent) & self.outer.keys())
        ways = [
            [floordiv(part * self.outer[name], 4) for part in (1, 3)] for name in bounds
        ]
        found = [
            substitute(extent, dict(zip(bounds, points, strict=True)))
            for points in itertools.product(*ways)
        ]
        total = found[0]
        for each in found[1:]:
            total = total + each
        return floordiv(2 * total + len(found), 2 * len(found))

    # Levels

    def _varies(self, level: Level) -> bool:
        extent = (
            self.facts.resolve(level.range.extent) if isinstance(level, LoopOp) else 1
        )
        return bool(names_of(extent) & self.outer.keys())

    def _level(self, level: Level, trips: Dim, extents: Extents) -> LevelForms:
        loads: list[Transfer] = []
        for argument, view in zip(level.view_arguments, level.views, strict=True):
            if not self._is_global(view.source):
                continue
            opened = self._opened(view.source, view.tmap)
            memory = memory_of(argument)
            if memory is None or memory.space == "gmem":
                self.views[argument] = opened
            else:
                in_boxes = memory.layout == "swizzled"
                loads.append(transfer(opened, extents, in_boxes))
        work = _Work(self)
        loops: list[LevelForms] = []
        for op in level.body.block.ops:
            if isinstance(op, LoopOp):
                inner = self._trips(op)
                name = op.range.iterator
                self.outer[name] = inner
                loops.append(self._level(op, inner, extents.with_loop(name, inner)))
            elif isinstance(op, NextOp):
                work.finish(op)
            elif isinstance(op, Operator):
                work.add(op)
        has_loads = isinstance(level, LoopOp) and bool(level.sources)
        pipelined = has_loads and not loops
        return work.level(
            trips, self._varies(level), pipelined, tuple(loads), tuple(loops)
        )

    def _is_global(self, source: SSAValue) -> bool:
        if source in self.views:
            return True
        owner = source.owner
        parent = owner.parent_op()
        return isinstance(parent, PlanOp)

    def _opened(self, source: SSAValue, tmap: TMap) -> GlobalView:
        """The part of a tensor in GMEM that is `tmap` of what `source` stands for."""
        held = self.views.get(source)
        if held is None:
            root = _root(source)
            if root not in self.tensors:
                self.tensors.append(root)
            dims = self.resolved(source)
            held = GlobalView(
                self.tensors.index(root), dims, TMap.whole(dims), _width(source)
            )
        inner = TMap(
            tuple(map(self.facts.resolve, tmap.offsets)),
            tuple(map(self.facts.resolve, tmap.tile)),
        )
        whole = held.tmap.then(inner)
        return GlobalView(held.tensor, held.dims, whole, held.element_bytes)


@dataclass
class _Work:
    """The work of one iteration of a level, operator by operator."""

    source: _Extraction
    products: list[MatrixProduct] = field(default_factory=list[MatrixProduct])
    reductions: list[TileReduction] = field(default_factory=list[TileReduction])
    special: dict[Dim, int] = field(default_factory=dict[Dim, int])
    issued: dict[Dim, int] = field(default_factory=dict[Dim, int])
    apart: list[tuple[Dim, int]] = field(default_factory=list[tuple[Dim, int]])
    shared: list[Dim] = field(default_factory=list[Dim])
    meetings: int = 0

    def add(self, op: Operator) -> None:
        (result,) = op.results
        if is_number(result):
            return
        if GUARDED in op.attributes:
            self.apart.append((self.source.elements(result), GUARDED_INSTRUCTIONS))
            return
        if op.ON_TENSOR_CORES:
            self._add_product(op)
        elif op.REDUCTION is not None:
            self._add_reduction(op)
        elif isinstance(op, Copy):
            self._add_copy(op)
        else:
            self._add_elementwise(op)

    def _add_product(self, op: Operator) -> None:
        lhs, _ = op.operands
        *_, rows, columns = self.source.resolved(op.results[0])
        (depth,) = op.expression.reduced
        memory = memory_of(lhs)
        self.products.append(
            MatrixProduct(
                rows,
                columns,
                self.source.facts.resolve(depth),
                _width(lhs),
                lhs_in_registers=memory is not None and memory.space == "rmem",
                takes_wgmma=takes_wgmma(op, self.source.as_tf32),
                origin=Origin(op.results[0]),
            )
        )

    def _add_reduction(self, op: Operator) -> None:
        (operand,) = op.operands
        elements = self.source.elements(operand)
        memory = memory_of(operand)
        in_fragment = memory is not None and memory.layout == "fragment"
        if op.REDUCTION == "max":
            self.apart.append((elements, MAXIMUM_INSTRUCTIONS))
        else:
            self._issue(elements, op.INSTRUCTIONS)
        (extent,) = op.expression.reduced
        row = self.source.facts.resolve(extent)
        if row != 1:
            behind = self.source.resolved(operand)[op.params["dim"] + 1 :]
            inner = product(behind)
            by_columns = self._is_summed_by_columns(op)
            self.reductions.append(
                TileReduction(
                    elements, row, inner, in_fragment, by_columns, Origin(op.results[0])
                )
            )

    def _is_summed_by_columns(self, op: Operator) -> bool:
        if (given := given_state(op)) is None:
            return False
        return summed_by_columns(*given, self.source.resolved) is op

    def _add_copy(self, op: Copy) -> None:
        self.shared.append(self.source.elements(op.results[0]) * _width(op.results[0]))
        if op.params["memory"].space == "smem":
            self.meetings += 1

    def _add_elementwise(self, op: Operator) -> None:
        elements = self.source.elements(op.results[0])
        # By a number or by one value a row, a quotient is written as a product.
        by_row = len(op.operands) == 2 and self.source.elements(op.operands[1])
        self._issue(elements, op.INSTRUCTIONS if by_row in (False, elements) else 1)
        if op.EXPONENTIALS:
            self.special[elements] = self.special.get(elements, 0) + op.EXPONENTIALS
        for operand in op.operands:
            memory = memory_of(operand)
            if memory is not None and memory.space == "smem":
                self.shared.append(self.source.elements(operand) * _width(operand))

    def finish(self, last: NextOp) -> None:
        """What combining the contributions with the states takes."""
        loop = cast(LoopOp, last.parent_op())
        for argument, state, given in zip(
            loop.state_arguments, loop.states, last.contributions, strict=True
        ):
            owner = given.value.owner
            accumulates = isinstance(owner, Operator) and state.kind == owner.REDUCTION
            count = (given.rescale is not None) + (not accumulates)
            self._issue(self.source.elements(argument), count)

    def _issue(self, elements: Dim, count: int) -> None:
        if count:
            self.issued[elements] = self.issued.get(elements, 0) + count

    def level(
        self,
        trips: Dim,
        varies: bool,
        is_pipelined: bool,
        loads: tuple[Transfer, ...],
        loops: tuple[LevelForms, ...],
    ) -> LevelForms:
        return LevelForms(
            trips,
            varies,
            is_pipelined,
            loads,
            tuple(self.products),
            tuple(self.reductions),
            tuple(self.special.items()),
            tuple(self.issued.items()),
            tuple(self.apart),
            tuple(self.shared),
            self.meetings,
            loops,
        )


def _rescales(op: Operation) -> bool:
    return isinstance(op, NextOp) and any(
        given.rescale is not None for given in op.contributions
    )


def _root(value: SSAValue) -> SSAValue:
    """The tensor that a view at plan level renames."""
    owner = value.owner
    while isinstance(owner, Operator) and owner.IS_VIEW:  # not a call of a library
        value = owner.operands[0]
        owner = value.owner
    return value


def _width(value: SSAValue) -> int:
    return element_bytes(cast(TensorType, value.type).element_type)
