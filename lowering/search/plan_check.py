"""The check of a plan without a GPU: executed tile by tile in NumPy on small sizes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from math import lcm

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import (
    Call,
    Dim,
    ceildiv,
    evaluate,
    names_of,
    symbol,
    terms_of,
)
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
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.search.dim_splits import (
    DimSplit,
    added_splits,
    fewer_parts,
    stated_splits,
)

LARGEST_WHOLE = 32
"""What a dim that is not divided is cut down to."""
COUNTS = (1, 2, 3, 4, 6, 8, 16)
"""Numbers of tiles that are tried, the smallest first."""


def check_on_small_sizes(graph: GraphOp, plan: PlanOp) -> NumericCheck:
    """
    A plan against its graph, on the smallest sizes for which it means the same.

    Raises ExecutionError if no sizes are small enough, and for whatever else fails.
    """
    with of_one_plan():
        return check_plan(graph, plan, small_sizes(graph, plan))


@contextmanager
def of_one_plan() -> Generator[None]:
    """
    Turn whatever the execution of a plan raises into an ExecutionError: a plan that
    shows a defect of Cleave is rejected for it, and others are tried.
    """
    try:
        yield
    except ExecutionError:
        raise
    except Exception as error:
        raise ExecutionError(
            f"internal error: {type(error).__name__}: {error}"
        ) from error


def small_sizes(graph: GraphOp, plan: PlanOp) -> dict[str, int]:
    """
    The smallest sizes of the symbols for which a plan means the same, with the counts
    and chunks of what it splits.
    """
    relations = Relations.of(graph, plan)
    original = relations.with_parts(GraphSizes.of(graph))
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
    splits: Sequence[DimSplit]
    counted: AbstractSet[str]
    """Dims of which every element is an iteration."""
    tiles: Mapping[str, int]
    """The tile sizes and split counts of the plan."""

    @classmethod
    def of(cls, graph: GraphOp, plan: PlanOp) -> Relations:
        binding = plan.facts.binding
        tiles = {n: v for n, v in binding.items() if isinstance(v, int)}
        levels = [op for op in plan.walk() if isinstance(op, Level)]
        bounds = [r.hi for level in levels for r in level.ranges]
        found = dict.fromkeys(pair for dim in bounds for pair in _divisions(dim))
        declared = {*plan.symbol_names}
        pairs = [p for p in found if names_of(p[0]) | names_of(p[1]) <= declared]
        facts = [fact for fact in plan.facts if len(fact.names) > 1]
        splits = dict.fromkeys([*stated_splits(graph), *added_splits(plan, graph)])
        return cls(facts, pairs, [*splits], {str(dim) for dim in bounds}, tiles)

    def with_parts(self, sizes: GraphSizes) -> GraphSizes:
        """Those of a graph with the counts of the plan, and chunks that follow."""
        names = dict.fromkeys(name for split in self.splits for name in split.names)
        counts = dict.fromkeys(split.count for split in self.splits)
        chunks: dict[str, Dim] = {}
        for split in self.splits:
            if split.chunk is not None:
                unit = self._unit(split)
                parts = ceildiv(split.extent, symbol(split.count) * unit)
                chunks[split.chunk] = parts * unit
        return GraphSizes(
            {**sizes.sizes, **{name: self.tiles[name] for name in names}},
            [*counts, *(name for name in sizes.free if name not in names)],
            {**sizes.derived, **chunks},
            sizes.facts,
        )

    def allow(self, sizes: Mapping[str, int]) -> bool:
        """Whether the facts hold for these sizes."""
        values = {**self.tiles, **sizes}
        return all(is_true(fact, values) for fact in self.facts)

    def at(self, sizes: Mapping[str, int]) -> list[tuple[bool, bool]]:
        """What holds for these sizes."""
        values = {**self.tiles, **sizes}
        divisions = [*self.divisions, *self._divisions_of_parts()]
        pairs = [(evaluate(a, values), evaluate(b, values)) for a, b in divisions]
        return [(size > step, size % step == 0) for size, step in pairs]

    def candidates(self, name: str) -> Sequence[int]:
        """Small sizes to try for a symbol, the smallest first."""
        if any(name == split.count for split in self.splits):
            return [fewer_parts(self.tiles[name])]
        fewer = {s.count: fewer_parts(self.tiles[s.count]) for s in self.splits}
        sizes: set[int] = set()
        for values in (self.tiles, {**self.tiles, **fewer}):
            if units := set(self._units(name, values)):
                units.add((1, lcm(*(parts * step for parts, step in units))))
            sizes.update(
                size
                for parts, step in units
                for count in COUNTS
                for size in _sizes_of(parts, count, step)
            )
        return sorted(sizes) or ([2] if name in self.counted else [LARGEST_WHOLE])

    def _units(self, name: str, values: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """In how many parts a symbol is split, and what divides a part."""
        for dim, step in self.divisions:
            if name in names_of(dim) and names_of(step) <= self.tiles.keys():
                yield _parts(dim, name, values), evaluate(step, values)
        for split in self.splits:
            if name in names_of(split.extent):
                count = values[split.count]
                yield count, self._unit(split)
                for step in self._steps(split):
                    yield count, evaluate(step, values)

    def _divisions_of_parts(self) -> Iterator[tuple[Dim, Dim]]:
        """
        What goes for parts: that they have several positions, or in chunks, that none
        is empty, and whether the last is full, as also its last tile.
        """
        for split in self.splits:
            if split.chunk is None:
                yield split.part, 1
                continue
            yield split.extent, split.part
            yield ceildiv(split.extent, split.part), symbol(split.count)
            for step in self._steps(split):
                yield split.extent, step

    def _steps(self, split: DimSplit) -> list[Dim]:
        """What divides the parts of a split into tiles."""
        return [step for dim, step in self.divisions if dim == split.part]

    def _unit(self, split: DimSplit) -> int:
        """What the length of a part is a multiple of: its tiles if they are full."""
        length = evaluate(split.part, self.tiles)
        steps = [evaluate(step, self.tiles) for step in self._steps(split)]
        full = [step for step in steps if length % step == 0]
        return lcm(*full) if full else LARGEST_WHOLE


def _sizes_of(parts: int, count: int, step: int) -> Iterator[int]:
    """Sizes of a dim of equal parts of `count` steps, or with less in the last."""
    full = parts * count * step
    yield from (full, full - step // 3)
    if parts > 1:
        yield from (full - parts * (step // 3), full - step)


def _parts(dim: Dim, name: str, values: Mapping[str, int]) -> int:
    """In how many parts a symbol is split in a dim such as `L floordiv s`."""
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
