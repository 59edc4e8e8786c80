"""The loop of a persistent kernel: what producer and consumers do in its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.ir import BlockArgument, SSAValue

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.parts import View
from cleave.lowering.tilelang.body import Body
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile
from cleave.lowering.tilelang.forms.macros import Macros
from cleave.lowering.tilelang.forms.persistent.loads import Loads, Ring
from cleave.lowering.tilelang.forms.persistent.structure import Structure
from cleave.lowering.tilelang.forms.persistent.warpgroups import WARPGROUP
from cleave.lowering.tilelang.kernel import EmissionContext, KernelEmitter
from cleave.lowering.tilelang.text import grouped, indented


class StepEmitter(KernelEmitter):
    """Writes the loop of one kernel in the form `persistent`."""

    def __init__(
        self, kernel: KernelOp, context: EmissionContext, structure: Structure
    ):
        super().__init__(kernel, context)
        self.structure = structure
        self.threads = kernel.threads.value.data if kernel.threads else WARPGROUP
        self.stages = kernel.stages.value.data if kernel.stages else 2
        known = {"T", "tilelang", "exp2", "reads_done", *context.symbol_names.values()}
        self.macro = Macros(known, self.macros)
        self.full = [self.names.fresh(f"full_{level}") for level in (0, 1)]
        self.empty = [self.names.fresh(f"empty_{level}") for level in (0, 1)]
        self.rings: list[Ring] = []
        self.body = self.body_of(kernel, {})

    def body_of(self, level: Level, matmul: Mapping[str, str]) -> Body:
        return Body(
            level.body.block, self.spelling, self.names, self.warps, self.places, matmul
        )

    def open(self, argument: BlockArgument, view: View) -> GlobalTile:
        place = self.view(argument, view.source, view.tmap)
        self.places[argument] = place
        return cast(GlobalTile, place)

    def steps(self) -> tuple[list[str], list[str]]:
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
        # TMA, which loads the next tile, does not wait for reads by threads.
        read = ["T.fence_proxy_async()"] if self.structure.statistics else []
        consume = [
            f"T.barrier_wait({full}[stage], step // stages % 2)",
            *step,
            f"if {iterator} > {lo}:",
            f"    T.wait_wgmma({len(self.structure.matmuls)})",
            *indented(read),
            f"    T.barrier_arrive({empty}[(step - 1) % stages])",
        ]
        end = [
            "T.wait_wgmma(0)",
            *read,
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
            tile = self.open(argument, view)
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
        body = self.body_of(loop, {"function": "T.wgmma_gemm", "clear": first})
        parts = self.structure
        for op in (*parts.renames, *parts.matmuls, *parts.statistics):
            body.emit(op)
        body.finish(loop.terminator)
        self.body.allocations += body.allocations
        return self.macro.add("iter_1", f"One step over {iterator}.", body.lines)
