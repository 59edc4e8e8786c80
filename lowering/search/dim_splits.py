"""
Dims that a plan or a piece of one splits, and fewer and smaller parts of them.

A plan is right for every count and chunk that its facts allow. So it is executed with
few parts, and yet with none that is empty: what combines them has to have work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.views import Split
from cleave.dialects.dim_structure import name_of
from cleave.dialects.dims import Dim, evaluate, floordiv, names_of, symbol
from cleave.dialects.itgraph.plan import PlanOp

FEWEST = 3
"""A first part, a last one, and one in between."""
NAMES = {"|": 1, ">=": 2}
"""How many symbols say how a dim is split, by the fact that says that they do."""
FEW = (4, 3, 2)
"""Numbers of parts that are tried, the best first."""


@dataclass(frozen=True)
class DimSplit:
    """
    A dim in `count` parts: equal ones, or with a chunk ones of so many positions, of
    which the last has what is left. Counts and chunks are symbols.
    """

    extent: Dim
    count: str
    chunk: str | None = None

    @property
    def part(self) -> Dim:
        """The positions of a part that is full."""
        if self.chunk is not None:
            return symbol(self.chunk)
        return floordiv(self.extent, symbol(self.count))

    @property
    def names(self) -> Iterator[str]:
        """The symbols that the split declares."""
        yield self.count
        if self.chunk is not None:
            yield self.chunk


def stated_splits(graph: GraphOp) -> Iterator[DimSplit]:
    """What a graph splits itself as symbols say."""
    for op in graph.operators:
        if isinstance(op, Split):
            values = [
                op.params[name] for name in ("count", "chunk") if name in op.params
            ]
            names = [name for value in values if (name := name_of(value)) is not None]
            dim: int = op.params["dim"]
            if len(names) == len(values):
                yield DimSplit(op.operand_types[0].dims[dim], *names)


def added_splits(holder: GraphOp | PlanOp, graph: GraphOp) -> Iterator[DimSplit]:
    """
    What a plan or a piece splits that `graph` does not, by its facts: `s | K`, or
    `s * C >= K` of a count and the chunk that was declared after it.
    """
    own = [name for name in holder.symbol_names if name not in graph.symbol_names]
    for fact in holder.facts:
        names = sorted(names_of(fact.lhs) & {*own}, key=own.index)
        lhs = prod(map(symbol, names), start=cast(Dim, 1))
        if len(names) == NAMES.get(fact.relation) and lhs == fact.lhs:
            yield DimSplit(fact.rhs, *names)


def fewer_parts(count: int) -> int:
    """The least number of equal parts, out of that many, that is not too small."""
    return next((n for n in range(FEWEST, count) if count % n == 0), count)


def parts_for(splits: Iterable[DimSplit], sizes: Mapping[str, int]) -> dict[str, int]:
    """Few parts for dims of these sizes, and chunks of which the last is not full."""
    found: dict[str, int] = {}
    for split in splits:
        extent = evaluate(split.extent, {**sizes, **found})
        if split.chunk is None:
            even = (n for n in FEW if extent % n == 0)
            found[split.count] = next(even, fewer_parts(extent))
            continue
        found[split.count], found[split.chunk] = next(
            ((n, extent // n + 1) for n in FEW if (n - 1) * (extent // n + 1) < extent),
            (1, extent),
        )
    return found
