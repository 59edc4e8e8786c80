"""
The text of the form `persistent`.

`load_1` and `iter_1` are what producer and consumers do in a step of the loop,
`produce_1` and `wrap_1` are their loops; `load_0` loads what the epilogue reads;
`iter_0` is what consumers do with an output tile, and ends in its epilogue;
`produce_0` and `wrap_0` go from tile to tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import memory_of
from cleave.dialects.itgraph.operators import Copy
from cleave.lowering.tilelang.forms.persistent.loads import Loads
from cleave.lowering.tilelang.forms.persistent.order import tile_lines
from cleave.lowering.tilelang.forms.persistent.resources import resources_of
from cleave.lowering.tilelang.forms.persistent.steps import StepEmitter
from cleave.lowering.tilelang.forms.persistent.stores import Stores
from cleave.lowering.tilelang.forms.persistent.structure import Structure
from cleave.lowering.tilelang.forms.persistent.warpgroups import (
    CONSUMER_BARRIER,
    PRODUCER_REGISTERS,
    WARPGROUP,
    raised_registers,
)
from cleave.lowering.tilelang.kernel import EmissionContext
from cleave.lowering.tilelang.text import EmissionError, grouped, indented


class PersistentEmitter(StepEmitter):
    """Writes one kernel in the form `persistent`."""

    def __init__(
        self, kernel: KernelOp, context: EmissionContext, structure: Structure
    ):
        super().__init__(kernel, context, structure)
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

    def lines(self) -> list[str]:
        self._constants()
        at_tile = self._tile_order()
        load_beside = self._open_kernel_views()
        produce_steps, consume_steps = self.steps()
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

    # Tiles

    def _open_kernel_views(self) -> list[str]:
        """What loads for the epilogue, while the last steps are computed."""
        loads = Loads(self.spelling, self.names, f"{self.full[0]}[0]")
        for argument, view in zip(
            self.kernel.view_arguments, self.kernel.views, strict=True
        ):
            tile = self.open(argument, view)
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
            # TMA, which loads the next tile, does not wait for reads by threads.
            body.lines.append("T.fence_proxy_async()")
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
