"""
Tile maps and iterator ranges as plain data; the attributes of the dialect wrap them.

A tmap (paper section 5.2) says which part of a tensor one iteration of a level uses:
where its tile begins and how large it is, one expression a dim. It binds iterators by
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cleave.dialects.dims import Dim, names_of, substitute

Shape: TypeAlias = tuple[Dim, ...]


@dataclass(frozen=True)
class TMap:
    """
    The tile of shape `tile` that begins at `offsets`, in elements.

    Along a dim in `gathers` the rows are picked one by one by an index vector as long
    as the tile (an operand of the level, not part of the tmap); the offset there is 0.
    A tile may exceed its tensor.
    """

    offsets: Shape
    tile: Shape
    gathers: tuple[int, ...] = ()

    @classmethod
    def whole(cls, dims: Sequence[Dim]) -> TMap:
        """All of a tensor."""
        return cls((0,) * len(dims), tuple(dims))

    def __str__(self) -> str:
        dims = enumerate(self.offsets)
        offsets = ", ".join("gather" if i in self.gathers else str(d) for i, d in dims)
        return f"[{offsets}] tile [{', '.join(map(str, self.tile))}]"

    @property
    def rank(self) -> int:
        return len(self.tile)

    @property
    def names(self) -> frozenset[str]:
        """Every iterator, let and symbol that is used."""
        return names_in(self.offsets) | names_in(self.tile)

    def is_whole(self, dims: Sequence[Dim]) -> bool:
        return self == TMap.whole(dims)

    def then(self, inner: TMap) -> TMap:
        """
        The tmap of a view of a view: this one gives the outer view, `inner` slices it.

        Raises ValueError where no single tmap says it: a dim that is gathered outside
        and sliced inside, or gathered inside of a tile that does not begin at 0.
        """
        if inner.rank != self.rank:
            raise ValueError(
                f"a tmap of rank {inner.rank} in a view of rank {self.rank}"
            )
        for dim in self.gathers:
            if inner.offsets[dim] != 0 or inner.tile[dim] != self.tile[dim]:
                raise ValueError(f"dim {dim} is sliced after its rows were gathered")
        for dim in inner.gathers:
            if dim in self.gathers or self.offsets[dim] != 0:
                raise ValueError(f"dim {dim} is gathered in a view that is offset")
        return TMap(
            tuple(a + b for a, b in zip(self.offsets, inner.offsets, strict=True)),
            inner.tile,
            tuple(sorted({*self.gathers, *inner.gathers})),
        )

    def substitute(self, values: Mapping[str, Dim]) -> TMap:
        return TMap(
            tuple(substitute(dim, values) for dim in self.offsets),
            tuple(substitute(dim, values) for dim in self.tile),
            self.gathers,
        )


@dataclass(frozen=True)
class Range:
    """The iterator `iterator`, from `lo` up to and without `hi`, in steps of 1."""

    iterator: str
    lo: Dim
    hi: Dim

    @property
    def extent(self) -> Dim:
        """How many iterations there are, where `hi` is not below `lo`."""
        return self.hi - self.lo


@dataclass(frozen=True)
class Lookup:
    """The integer called `name`, found at position `index` of a table."""

    name: str
    index: Shape


def names_in(dims: Iterable[Dim]) -> frozenset[str]:
    """Every name that any of the dims uses."""
    return frozenset[str]().union(*(names_of(dim) for dim in dims))
