"""
The text of the form `persistent`.

`load_1` and `iter_1` are what producer and consumers do in a step of the loop,
`produce_1` and `wrap_1` are their loops; `load_0` loads what the epilogue reads;
`iter_0` is what consumers do with an output tile, and ends in its epilogue;
`produce_0` and `wrap_0` go from tile to tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import BlockArgument, SSAValue

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.parts import View
from cleave.lowering.tilelang.body import Body
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile
from cleave.lowering.tilelang.forms.macros import Macros
from cleave.lowering.tilelang.forms.persistent.loads import Loads, Ring
from cleave.lowering.tilelang.forms.persistent.order import tile_lines
from cleave.lowering.tilelang.forms.persistent.resources import resources_of
from cleave.lowering.tilelang.forms.persistent.stores import Stores
from cleave.lowering.tilelang.forms.persistent.structure import Structure
from cleave.lowering.tilelang.forms.persistent.warpgroups import (
    CONSUMER_BARRIER,
    PRODUCER_REGISTERS,
    WARPGROUP,
    raised_registers,
)
from cleave.lowering.tilelang.kernel import EmissionContext, KernelEmitter
from cleave.lowering.tilelang.text import EmissionError, grouped, indented


class PersistentEmitter(KernelEmitter):
    """Writes one kernel in the form `persistent`."""

    def __init__(
        self, kernel: KernelOp, context: EmissionContext, structure: Structure
    ):
        super().__init__(kernel, context)
        self.structure = structure
        self.threads = kernel.threads.value.data if kernel.threads else WARPGROUP
        self.stages = kernel.stages.value.data if kernel.stages else 2
        known = {"T", "tilelang", "exp2", *context.symbol_names.values()}
        self.macro = Macros(known, self.macros)
        self.full = [self.names.fresh(f"full_{level}") for level in (0, 1)]
        self.empty = [self.names.fresh(f"empty_{level}") for level in (0, 1)]
        self.rings: list[Ring] = []
        self.body = self._body(kernel, {})
        self.stores = Stores(structure, self.body, self._meet, self._smem_left(context))

    @property
    def _meet(self) -> str:
        """The consumers wait for each other."""
        return f"T.sync_threads({CONSUMER_BARRIER}, {self.threads})"

    def _smem_left(self, context: EmissionContext) -> int:
        """Bytes for staging: what the loads and the epilogue do not take."""
        resources = resources_of(self.structure, context.facts)
        taken = resources.stage_bytes * self.stages + resources.beside_bytes
        if not isinstance(taken, int):
            raise EmissionError("a tile has no size; bind it first")
        return context.hardware.smem_bytes_per_block - taken

    def _body(self, level: Level, matmul: Mapping[str, str]) -> Body:
        return Body(
            level.body.block, self.spelling, self.names, self.warps, self.places, matmul
        )

    def lines(self) -> list[str]:
        self._constants()
        at_tile = self._tile_order()
        load_beside = self._open_kernel_views()
        produce_steps, consume_steps = self._steps()
        tile = self._tile(consume_steps)
        produce = self.macro.add(
            "produce_0",
            "The producer: loads for every tile of this threadblock.",
            _visit_tiles([*at_tile, *produce_steps, *load_beside]),
        )
        consume = self.macro.add(
            "wrap_0",
            "The consumers: every tile of this threadblock.",
            [*_visit_tiles([*at_tile, *tile]), *self.stores.last()],
        )
        self.macros.append("")
        return self.function(self._prim_func(produce, consume))

    def _constants(self) -> None:
        counts = [grouped(self.spelling.dim(r.hi)) for r in self.kernel.ranges]
        workers = self.context.hardware.multiprocessors
        self.macro.constant("stages", f"{self.stages}")
        self.macro.constant(
            "steps", self.spelling.dim(self.structure.loop.range.extent)
        )
        self.macro.constant("tiles", " * ".join(counts) or "1")
        self.macro.constant("workers", f"T.min({workers}, tiles)")

    # The loop

    def _steps(self) -> tuple[list[str], list[str]]:
        """The calls of the producer's and the consumers' loop over a tile's steps."""
        load, step = self._load_step(), self._step()
        range_ = self.structure.loop.range
        iterator = self.spelling.names[range_.iterator]
        lo, hi = self.spelling.dim(range_.lo), self.spelling.dim(range_.hi)
        offset = "" if lo == "0" else f" - {grouped(lo)}"
        header = [
            f"for {iterator} in T.serial({'steps' if lo == '0' else f'{lo}, {hi}'}):",
            f"    step = first + {iterator}{offset}",
            "    stage = step % stages",
        ]
        full, empty = self.full[1], self.empty[1]
        produce = [
            f"T.barrier_wait({empty}[stage], step // stages % 2 ^ 1)",
            *load,
            f"T.barrier_arrive({full}[stage])",
        ]
        consume = [
            f"T.barrier_wait({full}[stage], step // stages % 2)",
            *step,
            f"if {iterator} > {lo}:",
            f"    T.wait_wgmma({len(self.structure.matmuls)})",
            f"    T.barrier_arrive({empty}[(step - 1) % stages])",
        ]
        end = [
            "T.wait_wgmma(0)",
            f"T.barrier_arrive({empty}[(first + steps - 1) % stages])",
            *map(self._fence, self.structure.accumulators),
        ]
        # Steps are counted through all tiles, as the stages go round.
        given = {"first": "wave * steps"}
        return (
            self.macro.add(
                "produce_1",
                f"The steps over {iterator}: loads, as far ahead as there are stages.",
                [*header, *indented(produce)],
                given,
            ),
            self.macro.add(
                "wrap_1",
                f"The steps over {iterator}: each is waited for behind the next.",
                [*header, *indented(consume), *end],
                given,
            ),
        )

    def _fence(self, accumulator: SSAValue) -> str:
        buffer = cast(Buffer, self.places[accumulator])
        elements = " * ".join(self.spelling.extents(buffer.dims))
        registers = f"{elements} // {self.threads}"
        return f"T.warpgroup_fence_operand({buffer.name}, num_regs={registers})"

    def _load_step(self) -> list[str]:
        """A ring for each tile that the loop loads; the loads of one step."""
        loop = self.structure.loop
        loads = Loads(self.spelling, self.names, f"{self.full[1]}[stage]")
        for argument, view in zip(loop.view_arguments, loop.views, strict=True):
            tile = self._open(argument, view)
            memory = memory_of(argument)
            if memory is None or memory.space != "smem":
                continue
            ring = Ring(
                self.names.fresh(argument.name_hint or "t"),
                tile.tmap.tile,
                self.spelling.kept(tile.tmap.tile),
                tile.element,
                memory,
            )
            self.rings.append(ring)
            self.places[argument] = ring
            loads.add(tile, ring)
        iterator = self.spelling.names[loop.range.iterator]
        return self.macro.add(
            "load_1", f"Loads of a step over {iterator}.", loads.lines, loads.slices
        )

    def _step(self) -> list[str]:
        """What consumers do in a step; statistics run beside the matmuls."""
        loop = self.structure.loop
        iterator = self.spelling.names[loop.range.iterator]
        for state, argument, result in zip(
            loop.states, loop.state_arguments, loop.finals, strict=True
        ):
            memory = memory_of(argument) or Memory("rmem", "fragment")
            if result in self.structure.accumulators:
                buffer = self.body.new_buffer(result, memory)
            else:
                buffer = self.initialized(state.initial, result, memory, self.body)
            self.places[argument] = self.places[result] = buffer
        first = f"{iterator} == {self.spelling.dim(loop.range.lo)}"
        body = self._body(loop, {"function": "T.wgmma_gemm", "clear": first})
        parts = self.structure
        for op in (*parts.renames, *parts.matmuls, *parts.statistics):
            body.emit(op)
        body.finish(loop.terminator)
        self.body.allocations += body.allocations
        return self.macro.add("iter_1", f"One step over {iterator}.", body.lines)

    # Tiles

    def _open(self, argument: BlockArgument, view: View) -> GlobalTile:
        place = self.view(argument, view.source, view.tmap)
        self.places[argument] = place
        return cast(GlobalTile, place)

    def _open_kernel_views(self) -> list[str]:
        """What loads for the epilogue, while the last steps are computed."""
        loads = Loads(self.spelling, self.names, f"{self.full[0]}[0]")
        for argument, view in zip(
            self.kernel.view_arguments, self.kernel.views, strict=True
        ):
            tile = self._open(argument, view)
            memory = memory_of(argument)
            if memory is None or argument not in self.structure.beside:
                continue
            buffer = self.body.new_buffer(argument, memory)
            if memory.layout == "swizzled":
                self.staged.append(buffer)
            loads.add(tile, buffer)
        if not loads.lines:
            return []
        lines = [
            f"T.barrier_wait({self.empty[0]}[0], wave % 2 ^ 1)",
            *loads.lines,
            f"T.barrier_arrive({self.full[0]}[0])",
        ]
        what = "Loads for the epilogue of a tile."
        return self.macro.add("load_0", what, lines, loads.slices)

    def _tile(self, steps: Sequence[str]) -> list[str]:
        """What consumers do with an output tile."""
        body = self.body
        body.lines += steps
        if self.structure.beside:
            body.lines.append(f"T.barrier_wait({self.full[0]}[0], wave % 2)")
        for op in self.structure.epilogue:
            if op in self.structure.staged:
                continue
            is_exchange = isinstance(op, Copy) and op.params["memory"].space == "smem"
            if is_exchange:
                # Nobody reads any more what the copy of the tile before wrote.
                body.lines.append(self._meet)
            body.emit(op)
            if is_exchange:
                body.lines.append(self._meet)
        for value, target in self.output_tiles():
            if value.owner in self.structure.staged:
                body.lines += self.stores.through_smem(cast(Copy, value.owner), target)
            else:
                body.lines += self.stores.direct(body.buffer_of(value), target)
        if self.structure.beside:
            body.lines.append(f"T.barrier_arrive({self.empty[0]}[0])")
        return self.macro.add(
            "iter_0", "What the consumers do with a tile.", body.lines
        )

    def _tile_order(self) -> list[str]:
        """The statement that turns the number of a tile into its iterators."""
        iterators = [self.spelling.names[r.iterator] for r in self.kernel.ranges]
        if not iterators:
            return []
        counts = [self.spelling.dim(r.hi) for r in self.kernel.ranges]
        swizzle = self.kernel.swizzle.value.data if self.kernel.swizzle else 0
        # With less than two iterators there is no row of tiles.
        row_count = self.kernel.ranges[-2:][0].hi
        divides = self.context.facts.divides(max(1, swizzle), row_count)
        results = ", ".join(iterators)
        shared = "; tiles of one time share what they read in L2" if swizzle > 1 else ""
        self.macro.add(
            "tile_at",
            f"The tile of this number{shared}.",
            tile_lines(iterators, counts, swizzle, divides),
            {"number": ""},
            returns=results,
        )
        return [f"{results} = tile_at(number)"]

    # The launch

    def _prim_func(self, produce: Sequence[str], consume: Sequence[str]) -> list[str]:
        consumers = self.threads // WARPGROUP
        raised = raised_registers(consumers, self.context.hardware)
        inside = [ring.ring_allocation("stages", self.spelling) for ring in self.rings]
        self.staged += self.stores.staging.values()
        inside += self.allocations(
            [
                *self.body.allocations,
                *self.stores.pieces.values(),
                *self.stores.staging.values(),
            ]
        )
        levels = (0, 1) if self.structure.beside else (1,)
        for level in levels:
            count = " * stages" if level else ""
            full, empty = self.full[level], self.empty[level]
            inside += [
                f"{full} = T.alloc_barrier([{WARPGROUP}]{count})",
                f"{empty} = T.alloc_barrier([{self.threads}]{count})",
            ]
        inside += [
            f"if T.get_thread_binding() < {WARPGROUP}:",
            *(indented([f"T.dec_max_nreg({PRODUCER_REGISTERS})"] if raised else [])),
            *indented(produce),
            "else:",
            *(indented([f"T.inc_max_nreg({raised})"] if raised else [])),
            *indented(consume),
        ]
        threads = self.threads + WARPGROUP
        return self.prim_func(["workers"], threads, "worker", inside)


def _visit_tiles(inside: Sequence[str]) -> list[str]:
    """The loop of a threadblock over the tiles that it takes."""
    return [
        "for wave in T.serial(T.ceildiv(tiles, workers)):",
        "    number = wave * workers + worker",
        "    if number < tiles:",
        *indented(inside, 2),
    ]
