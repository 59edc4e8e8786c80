"""Whether reductions in parts could fill a GPU that plans without leave idle."""

from __future__ import annotations

from xdsl.utils.exceptions import PassFailedException

from cleave.passes.cost.breakdown import predicted_times
from cleave.passes.scheduling.ranking import Search
from cleave.passes.scheduling.selection import Selection, prepared_for_schedules
from cleave.passes.scheduling.structures import kernels_of


def could_run_in_parts(selection: Selection, search: Search) -> bool:
    """
    Whether the best plan leaves half of the multiprocessors without a threadblock, in
    the kernel that takes longest: in parts it may be much faster, if it takes longer
    than the kernel that adds up the parts.
    """
    hardware = search.hardware
    if not selection.candidates:
        return False
    best = selection.candidates[0]
    if best.slowest.seconds <= hardware.next_launch_seconds:
        return False
    graph = best.bound_graphs[best.schedules.index(best.slowest)]
    try:
        plan = best.slowest.plan(prepared_for_schedules(graph), search)
    except PassFailedException:
        return False
    (kernel,) = kernels_of(plan)
    tiles = predicted_times(kernel, hardware).tiles
    return bool(2 * tiles.max() <= hardware.multiprocessors)
