"""The IR on the way from the graphs of a chosen plan to its tile program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Operation

from cleave.lowering.search.candidates import PlannedCandidate
from cleave.passes.scheduling.ranking import KernelSchedule
from cleave.passes.scheduling.selection import prepared_for_schedules
from cleave.passes.scheduling.structures import schedule

CHOSEN_GRAPHS = "chosen-graphs"
PLAN = "plan-memory"
"""The last stage: the plan that the generated module is written from."""


def chosen_stages(chosen: PlannedCandidate) -> Mapping[str, str]:
    """
    The texts of what a chosen plan is made from, made once more, in order: its graphs,
    these with casts explicit and broadcasts folded, their loops, and the whole plan.

    Calls of a library have no loops; they stand there as the calls that they are.
    """
    prepared: list[Operation] = []
    loops: list[Operation] = []
    for graph, step in zip(chosen.pieces, chosen.steps, strict=True):
        if isinstance(step, KernelSchedule):
            ready = prepared_for_schedules(graph)
            prepared.append(ready)
            loops.append(schedule(ready, step.chosen_structure).plan)
        else:
            prepared.append(graph)
            loops.append(step.call)
    return {
        CHOSEN_GRAPHS: printed(chosen.pieces),
        "insert-casts": printed(prepared),
        "schedule-loops": printed(loops),
        PLAN: printed([chosen.plan]),
    }


def printed(ops: Iterable[Operation]) -> str:
    """IR text that `cleave-opt` reads, of one operation or several."""
    return "".join(f"{op!s}\n" for op in ops)
