"""`select-schedules`: the fastest plans of each graph, by the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    f64,
    i64,
)
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.equal_graphs import (
    EQUALS,
    have_candidates,
    is_original,
    symbol_names,
)
from cleave.passes.option_ranges import Range
from cleave.passes.partitioning.piece import KERNEL
from cleave.passes.pass_warnings import warn
from cleave.passes.scheduling.tiles import fresh_name
from cleave.passes.symbolize import SymbolizePass

if TYPE_CHECKING:
    from cleave.passes.scheduling.ranking import Pruned, Search
    from cleave.passes.scheduling.selection import Candidate, Selection

RANK = "rank"
"""The attribute of a plan that counts from 0, the fastest."""
PREDICTED = "predicted_us"
"""The attribute of a plan with its time by the model, launches included."""
SCHEDULE = "schedule"
"""The attribute of a plan with what was chosen for each of its kernels."""
STATS = "schedules"
"""The attribute of a graph with the number of schedules left out, by reason."""


@dataclass(frozen=True)
class SelectSchedulesPass(ModulePass):
    """
    Add, for every graph, the `top-k` fastest plans by the cost model (paper, Algorithm
    1 and appendix A).

    Candidates are the graph, those that equal it, and sequences of pieces that were cut
    at splits or reductions; all of one original compete. Each loop structure is
    scheduled and its memory planned once, with tile sizes as symbols; the closed forms
    of its traffic, memory, registers and work are evaluated for all tile
    configurations, kernel forms and launches at once. What breaks a rule of the
    hardware or of TileLang is left out (counted by rule with `stats`), the rest ranked.
    The first plans are of different kinds as far as those come near.

    The original stays; candidates and pieces are replaced by the plans, which say what
    they equal, their rank, and the time that was predicted. Sizes have to be bound.

    `iterate=false` and `layouts=false` are the paper's ablations (figure 12): no
    iterative tiling, no reasoning about tensor-core layouts.

    Before:
        algebra.graph @scores [M, L, D] where [M = 4096, L = 4096, D = 128] ... { ... }
    After (besides @scores):
        itgraph.plan @scores_plan0 [M, L, D, BM, BL]
            where [M = 4096, L = 4096, D = 128, BM = 128, BL = 256] ...
            attributes {equals = @scores, predicted_us = 23.1, rank = 0 : i64,
                        schedule = ["tile M=128 L=256, ..."]} { ... }
    """

    name = "select-schedules"

    top_k: Annotated[int, Range(1)] = 8
    arch: str = "sm_90a"
    stats: bool = False
    iterate: bool = True
    layouts: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cleave.lowering.hardware import HardwareError, hardware_for_arch
        from cleave.passes.scheduling.ranking import Search
        from cleave.passes.scheduling.selection import select

        try:
            hardware = hardware_for_arch(self.arch)
        except HardwareError as error:
            raise PassFailedException(str(error)) from error
        search = Search(hardware, iterate=self.iterate, layouts=self.layouts)
        SymbolizePass().apply(ctx, op)
        graphs = self._without_plans(op)
        equal = have_candidates(graphs)
        # Originals only if nothing says that it equals them.
        candidates = [graph for graph in graphs if graph.graph_name not in equal]
        for graph in candidates:
            _require_sizes(graph)
        try:
            selections = select(candidates, search)
        except ValueError as error:
            raise PassFailedException(str(error)) from error
        # All are scheduled before one is replaced: a failure changes nothing.
        taken = symbol_names(op)
        plans = {
            name: self._plans(name, selection, search, taken)
            for name, selection in selections.items()
        }
        originals = {graph.graph_name: graph for graph in graphs}
        for name, selection in selections.items():
            if self.stats and name in originals:
                originals[name].attributes[STATS] = _stats(selection.pruned)
        for graph in candidates:
            if not is_original(graph):
                op.body.block.erase_op(graph)
        for found in plans.values():
            op.body.block.add_ops(found)

    def _without_plans(self, module: ModuleOp) -> list[GraphOp]:
        """The graphs of a module but those that have plans already."""
        planned = have_candidates(op for op in module.ops if isinstance(op, PlanOp))
        graphs = [graph for graph in module.ops if isinstance(graph, GraphOp)]
        for graph in graphs:
            if graph.graph_name in planned:
                warn(self.name, f"graph @{graph.graph_name} has plans; not scheduled")
        return [graph for graph in graphs if graph.graph_name not in planned]

    def _plans(
        self, name: str, selection: Selection, search: Search, taken: set[str]
    ) -> list[PlanOp]:
        """
        The plans for the graph of this name, in order. Their names are not among those
        that are taken, and become so.
        """
        from cleave.passes.scheduling.selection import varied

        chosen: list[tuple[Candidate, PlanOp]] = []
        for candidate in varied(selection.candidates, self.top_k):
            if len(chosen) == self.top_k:
                break
            try:
                chosen.append((candidate, candidate.plan(search)))
            except PassFailedException as error:
                selection.pruned.refused[str(error)] += 1
        if not chosen:
            raise PassFailedException(
                f"@{name} has no legal schedule: {selection.pruned.binding()}"
            )
        chosen.sort(key=lambda pair: pair[0].seconds)
        for number, (candidate, plan) in enumerate(chosen):
            plan.sym_name = StringAttr(fresh_name(f"{name}_plan{number}", taken))
            taken.add(plan.plan_name)
            plan.attributes.pop(KERNEL, None)
            plan.attributes.update(
                {
                    EQUALS: SymbolRefAttr(name),
                    RANK: IntegerAttr(number, i64),
                    PREDICTED: FloatAttr(round(candidate.seconds * 1e6, 2), f64),
                    SCHEDULE: ArrayAttr(
                        StringAttr(str(schedule)) for schedule in candidate.schedules
                    ),
                }
            )
        return [plan for _, plan in chosen]


def _require_sizes(graph: GraphOp) -> None:
    binding = graph.facts.binding
    for name in graph.symbol_names:
        if not isinstance(binding.get(name), int):
            raise PassFailedException(
                f"symbol {name} of graph @{graph.graph_name} has no size; state it as "
                "a fact, or run specialize first"
            )


def _stats(pruned: Pruned) -> DictionaryAttr:
    counts = {"evaluated": pruned.evaluated, **pruned.by_rule, **pruned.refused}
    return DictionaryAttr(
        {reason: IntegerAttr(number, i64) for reason, number in counts.items()}
    )
