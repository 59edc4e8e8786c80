"""The check of a plan without a GPU: executed tile by tile in NumPy on small sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import lcm

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Call, Dim, evaluate, names_of, terms_of
from cleave.dialects.fact import Fact
from cleave.dialects.itgraph.level import Level
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.reduced_sizes import (
    GraphSizes,
    SignedParams,
    is_true,
    sizes_in_constants,
)
from cleave.lowering.compilation.tile_check import check_plan

LARGEST_WHOLE = 32
"""What a dim that is not divided is cut down to."""
COUNTS = (1, 2, 3, 4, 6, 8, 16)
"""Numbers of tiles that are tried, the smallest first."""


def check_on_small_sizes(graph: GraphOp, plan: PlanOp) -> NumericCheck:
    """
    A plan against its graph, on the smallest sizes for which it means the same.

    Raises ExecutionError if no sizes are small enough.
    """
    return check_plan(graph, plan, small_sizes(graph, plan))


def small_sizes(graph: GraphOp, plan: PlanOp) -> dict[str, int]:
    """The smallest sizes of the symbols for which a plan means the same."""
    relations = Relations.of(plan)
    original = GraphSizes.of(graph)
    signed = SignedParams.of(graph, original.sizes)
    wanted = relations.at(original.sizes)
    kept = sizes_in_constants(graph)
    return original.shrunk(
        lambda name: () if name in kept else relations.candidates(name),
        lambda sizes: (
            signed.keep(sizes)
            and relations.allow(sizes)
            and relations.at(sizes) == wanted
        ),
    )


@dataclass(frozen=True)
class Relations:
    """
    What a plan relies on: its facts, such as that a split count divides a dim, and for
    each dim that is divided, whether it has several tiles and whether the last is full.
    """

    facts: Sequence[Fact]
    """Those that say more than the size of one symbol."""

    divisions: Sequence[tuple[Dim, Dim]]
    counted: AbstractSet[str]
    """Dims of which every element is an iteration."""
    tiles: Mapping[str, int]
    """The tile sizes and split counts of the plan."""

    @classmethod
    def of(cls, plan: PlanOp) -> Relations:
        binding = plan.facts.binding
        tiles = {n: v for n, v in binding.items() if isinstance(v, int)}
        levels = [op for op in plan.walk() if isinstance(op, Level)]
        bounds = [r.hi for level in levels for r in level.ranges]
        found = dict.fromkeys(pair for dim in bounds for pair in _divisions(dim))
        declared = {*plan.symbol_names}
        pairs = [p for p in found if names_of(p[0]) | names_of(p[1]) <= declared]
        facts = [fact for fact in plan.facts if len(fact.names) > 1]
        return cls(facts, pairs, {str(dim) for dim in bounds}, tiles)

    def allow(self, sizes: Mapping[str, int]) -> bool:
        """Whether the facts hold for these sizes."""
        values = {**self.tiles, **sizes}
        return all(is_true(fact, values) for fact in self.facts)

    def at(self, sizes: Mapping[str, int]) -> list[tuple[bool, bool]]:
        """What holds for these sizes."""
        values = {**self.tiles, **sizes}
        pairs = [(evaluate(a, values), evaluate(b, values)) for a, b in self.divisions]
        return [(size > step, size % step == 0) for size, step in pairs]

    def candidates(self, name: str) -> Sequence[int]:
        """Small sizes to try for a symbol, the smallest first."""
        units = [
            evaluate(step, self.tiles) * self._parts(dim, name)
            for dim, step in self.divisions
            if name in names_of(dim) and names_of(step) <= self.tiles.keys()
        ]
        if not units:
            return [2] if name in self.counted else [LARGEST_WHOLE]
        unit = lcm(*units)
        steps = sorted({*units, unit})
        return sorted(
            {
                size
                for step in steps
                for count in COUNTS
                for size in (count * step - step // 3, count * step)
            }
        )

    def _parts(self, dim: Dim, name: str) -> int:
        """In how many parts a symbol is split in a dim such as `L floordiv s`."""
        values = dict(self.tiles)
        size = values.get(name, 1) or 1
        whole = evaluate(dim, {**values, name: size})
        return max(1, size // max(1, whole))


def _divisions(dim: Dim) -> Iterator[tuple[Dim, Dim]]:
    """The dividend and divisor of each `ceildiv` in a bound."""
    for term in terms_of(dim):
        for atom, _ in term.factors:
            if isinstance(atom, Call):
                if atom.kind == "ceildiv":
                    yield atom.args[0], atom.args[1]
                for arg in atom.args:
                    yield from _divisions(arg)
