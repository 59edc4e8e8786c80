"""The boundaries of a graph's unfused form, one kernel an operator group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cleave.dialects.dims import Dim
from cleave.passes.partitioning.boundaries import Boundaries, Boundary, Place


def around_groups(boundaries: Boundaries, together: bool) -> Iterator[Boundary]:
    """
    The boundaries around every matmul and every group of other reductions: those that
    reduce the same dims to the same dims if they are `together`, else each one.
    """
    done = frozenset[int]()
    while done != boundaries.everything:
        if others := _ready(boundaries, done, matmuls=False):
            if any(map(boundaries.only_regroups, others)):
                yield done, Place.LEAST
            for number in others:
                done = _group(boundaries, number, done, together)
            if not together or _ready(boundaries, done, matmuls=False):
                yield done, Place.LEAST
        else:
            yield done, Place.OPERANDS
            done |= {_ready(boundaries, done, matmuls=True)[0]}
            yield done, Place.RESULTS


def _ready(boundaries: Boundaries, done: frozenset[int], matmuls: bool) -> list[int]:
    """The reductions that can be done next."""
    return [
        number
        for number in sorted(boundaries.everything - done)
        if boundaries.needs(number) <= done
        and matmuls == boundaries.reductions[number].ON_TENSOR_CORES
    ]


def _group(
    boundaries: Boundaries, first: int, done: frozenset[int], together: bool
) -> frozenset[int]:
    """The reductions done when a group is that begins with `first`."""

    def dims(number: int) -> tuple[Sequence[Dim], Sequence[Dim]]:
        op = boundaries.reductions[number]
        return op.expression.reduced, op.result_type.dims

    done |= {first}
    if not together or boundaries.only_regroups(first):
        return done
    for number in sorted(boundaries.everything - done):
        op = boundaries.reductions[number]
        if boundaries.only_regroups(number) or op.ON_TENSOR_CORES:
            continue
        if boundaries.needs(number) <= done and dims(number) == dims(first):
            done |= {number}
    return done
