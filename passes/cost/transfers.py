"""What tmaps move: how many elements of a tensor the iterations of levels cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cleave.dialects.dims import (
    Dim,
    ceildiv,
    maximum,
    minimum,
    names_of,
    substitute,
    symbol,
)
from cleave.dialects.itgraph.tmap import TMap
from cleave.passes.cost.closed_forms import Transfer, product


@dataclass(frozen=True)
class GlobalView:
    """A part of a tensor in GMEM, as the levels around it slice it."""

    tensor: int
    dims: tuple[Dim, ...]
    tmap: TMap
    element_bytes: int


@dataclass(frozen=True)
class Extents:
    """How far each iterator around a place counts: the kernel's, and the loops'."""

    kernel: Mapping[str, Dim]
    loops: Mapping[str, Dim]

    def with_loop(self, iterator: str, trips: Dim) -> Extents:
        return Extents(self.kernel, {**self.loops, iterator: trips})


def transfer(view: GlobalView, extents: Extents, in_boxes: bool = False) -> Transfer:
    """The closed forms of moving this part of a tensor in every iteration around it."""
    used = {name for offset in view.tmap.offsets for name in names_of(offset)}
    everywhere = {**extents.kernel, **extents.loops}
    again = [extent for name, extent in everywhere.items() if name not in used]
    return Transfer(
        tensor=view.tensor,
        tile=view.tmap.tile,
        element_bytes=view.element_bytes,
        moves=product(list(extents.loops.values())),
        elements=_covered(view, everywhere, ()) * product(again),
        held=_covered(view, extents.loops, extents.kernel),
        iterators=tuple(name for name in extents.kernel if name in used),
        row_elements=_row_elements(view.dims),
        begins=_begins(view, everywhere),
        run=_run(view, extents),
        in_boxes=in_boxes,
    )


def _covered(
    view: GlobalView, iterators: Mapping[str, Dim], still: Iterable[str]
) -> Dim:
    """
    Distinct elements of the tensor that the iterations over `iterators` cover, those in
    `still` standing at 0.
    """
    along = zip(view.dims, view.tmap.tile, view.tmap.offsets, strict=True)
    zeros: dict[str, Dim] = dict.fromkeys(still, 0)
    return product([_along(*each, iterators, zeros) for each in along])


def _run(view: GlobalView, extents: Extents) -> Dim:
    """What a threadblock moves along the innermost dim that is more than one long."""
    along = zip(view.dims, view.tmap.tile, view.tmap.offsets, strict=True)
    kept = [each for each in along if each[0] != 1]
    if not kept:
        return 1
    return _along(*kept[-1], extents.loops, dict.fromkeys(extents.kernel, 0))


def _along(
    dim: Dim,
    tile: Dim,
    offset: Dim,
    iterators: Mapping[str, Dim],
    still: Mapping[str, Dim],
) -> Dim:
    """The same along one dim."""
    used = names_of(offset)
    moving = {name: extent for name, extent in iterators.items() if name in used}
    if not moving:
        return tile if tile == dim else minimum(tile, dim)
    if len(moving) == 1:
        ((name, extent),) = moving.items()
        if offset == symbol(name) * tile and extent == ceildiv(dim, tile):
            return dim  # adjacent tiles up to the end
    last = {**still, **{name: extent - 1 for name, extent in moving.items()}}
    beyond = substitute(offset, last) + tile - dim
    return product(list(moving.values())) * tile - maximum(0, beyond)


def _begins(view: GlobalView, iterators: Mapping[str, Dim]) -> tuple[Dim, ...]:
    """Where rows of the first tile begin, and how far steps of iterators move that."""
    along = zip(view.dims, view.tmap.tile, view.tmap.offsets, strict=True)
    kept = [offset for dim, tile, offset in along if dim != 1 or tile != 1]
    if not kept:
        return ()
    used = [name for name in iterators if name in names_of(kept[-1])]
    zeros: dict[str, Dim] = dict.fromkeys(used, 0)
    first = substitute(kept[-1], zeros)
    steps = [substitute(kept[-1], {**zeros, name: 1}) - first for name in used]
    return tuple(dict.fromkeys([first, *steps]))


def _row_elements(dims: tuple[Dim, ...]) -> Dim:
    """The stride of the second innermost dim; 0 if the tensor is one row."""
    kept = [dim for dim in dims if dim != 1]
    return kept[-1] if len(kept) > 1 else 0
