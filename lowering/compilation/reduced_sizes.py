"""
Small sizes on which a tile program can be executed tile by tile, and means the same.

A program relies on what was true of the sizes that it was scheduled for: the facts, a
dim of several tiles, or a tile that divides its dim, so that nobody masks a tail. And
where `L - M` is the diagonal of a mask, the sign of that decides what is left out. So
sizes are made smaller one after the other, each as far as all of that stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, SymbolicDim, evaluate, names_of, symbol
from cleave.dialects.facts import Fact
from cleave.lowering.compilation.configuration import Configuration

LARGEST_WHOLE = 32
"""What a dim that is not divided is cut down to."""
DYNAMIC = (521, 520, 512, 4096, 64, 1)
"""What is tried, in this order, for dims that are only known at run time."""


class NoSizesError(Exception):
    """A graph with dynamic dims for which none of the sizes fulfils its facts."""


@dataclass(frozen=True)
class GraphSizes:
    """The sizes of a graph's symbols, and what has to stay true of other sizes."""

    sizes: Mapping[str, int]
    free: Sequence[str]
    """Symbols whose sizes no fact derives from those of others."""
    derived: Mapping[str, Dim]
    facts: Sequence[Fact]
    """Those that say more than the size of one symbol."""

    @classmethod
    def of(cls, graph: GraphOp) -> GraphSizes:
        """
        The sizes that the facts of a graph bind, and some for symbols that they do not.

        Raises NoSizesError where none are found for those.
        """
        derived: dict[str, Dim] = {}
        for fact in graph.facts:
            name = str(fact.lhs)
            is_equation = fact.relation == "=" and names_of(fact.rhs)
            if is_equation and name in graph.symbol_names:
                derived[name] = fact.rhs
        free = [name for name in graph.symbol_names if name not in derived]
        facts = [fact for fact in graph.facts if not _binds(fact)]
        binding = graph.facts.binding
        for dynamic in DYNAMIC:
            sizes: dict[str, int] = {}
            for name in free:
                value = binding.get(name)
                sizes[name] = value if isinstance(value, int) else dynamic
            found = cls(_settled(sizes, derived), free, derived, facts)
            if all(is_true(fact, found.sizes) for fact in facts):
                return found
        raise NoSizesError(
            f"no sizes are known for the dynamic dims of @{graph.graph_name} "
            "that fulfil its facts"
        )

    def shrunk(
        self,
        candidates: Callable[[str], Sequence[int]],
        holds: Callable[[Mapping[str, int]], bool],
    ) -> dict[str, int]:
        """Each size replaced by its first candidate with which all stays true."""
        sizes = dict(self.sizes)
        # A size may be held up by one that only shrinks after it.
        for _ in range(2):
            for name in self.free:
                alike = [other for other in self.free if sizes[other] == sizes[name]]
                moves = [
                    dict.fromkeys(moved, candidate)
                    for candidate in candidates(name)
                    if candidate < sizes[name]
                    # Dims that are equal may have to stay so.
                    for moved in ([name], alike)
                ]
                for move in moves:
                    tried = _settled({**sizes, **move}, self.derived)
                    if all(is_true(fact, tried) for fact in self.facts) and holds(
                        tried
                    ):
                        sizes = tried
                        break
        return sizes


@dataclass(frozen=True)
class SignedParams:
    """
    Symbolic parameters of operators and by what they exceed others of the same operator
    (the diagonal of a window its size), and whether that is below, 0, or above.
    """

    signs: Mapping[SymbolicDim, int]

    @classmethod
    def of(cls, graph: GraphOp, sizes: Mapping[str, int]) -> SignedParams:
        dims: list[Dim] = []
        for op in graph.operators:
            values = [
                value
                for value in op.params.values()
                if isinstance(value, int | SymbolicDim) and not isinstance(value, bool)
            ]
            dims += values
            # A range of positions may or may not contain its last one.
            dims += [
                a - b + last for a, b in permutations(values, 2) for last in (0, 1)
            ]
        return cls(
            {d: _sign(evaluate(d, sizes)) for d in dims if isinstance(d, SymbolicDim)}
        )

    def keep(self, sizes: Mapping[str, int]) -> bool:
        """Whether they have the same signs under other sizes."""
        return all(_sign(evaluate(d, sizes)) == sign for d, sign in self.signs.items())


def sizes_in_constants(graph: GraphOp) -> frozenset[str]:
    """
    Symbols that constants of a graph are made of. They keep their sizes, of which a
    pass may have computed a number, as `1 / sqrt(D)`.
    """
    values = [
        value
        for op in graph.operators
        if isinstance(op, Constant)
        for value in op.params.values()
    ]
    dims = [value for value in values if isinstance(value, SymbolicDim)]
    return frozenset(name for dim in dims for name in dim.names)


def reduced_sizes(graph: GraphOp, configuration: Configuration) -> dict[str, int]:
    """Small sizes for a program that was scheduled for the sizes of the graph."""
    divided = [*_reduced(graph, configuration)]
    divided += [(symbol(name), tile) for name, tile in configuration.tile.items()]
    original = GraphSizes.of(graph)
    signed = SignedParams.of(graph, original.sizes)
    relations = [_relation(*each, original.sizes) for each in divided]

    def candidates(name: str) -> Sequence[int]:
        tiles = (configuration.reduce.get(name), configuration.tile.get(name))
        counts = (2, 3, 4, 6, 8, 12, 16, 32)
        return [
            size
            for tile in tiles
            if tile is not None
            for count in counts
            for size in (count * tile - tile // 3, count * tile)
        ] or [LARGEST_WHOLE]

    def holds(sizes: Mapping[str, int]) -> bool:
        return signed.keep(sizes) and relations == [
            _relation(*each, sizes) for each in divided
        ]

    return original.shrunk(candidates, holds)


def sizes_with_tails(graph: GraphOp, configuration: Configuration) -> dict[str, int]:
    """Small sizes for which the last step of loops is not full, where facts allow."""

    def candidates(name: str) -> Sequence[int]:
        tile = configuration.reduce.get(name) or configuration.tile.get(name)
        return [tile + max(1, tile // 3) if tile is not None else LARGEST_WHOLE]

    original = GraphSizes.of(graph)
    return original.shrunk(candidates, SignedParams.of(graph, original.sizes).keep)


def _reduced(graph: GraphOp, configuration: Configuration) -> Iterator[tuple[Dim, int]]:
    """Each reduced dim that is divided, such as `L floordiv s`, and its tile size."""
    for op in graph.operators:
        if op.REDUCTION is not None:
            (extent,) = op.expression.reduced
            for name in names_of(extent) & configuration.reduce.keys():
                yield extent, configuration.reduce[name]


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _relation(extent: Dim, step: int, sizes: Mapping[str, int]) -> tuple[bool, bool]:
    """Whether a dim has several tiles, and whether the last one is full."""
    size = evaluate(extent, sizes)
    return size > step, size % step == 0


def _settled(sizes: dict[str, int], derived: Mapping[str, Dim]) -> dict[str, int]:
    """The sizes with those that follow from them, each after what it follows from."""
    pending = dict(derived)
    while ready := [n for n, dim in pending.items() if not names_of(dim) & {*pending}]:
        for name in ready:
            sizes[name] = evaluate(pending.pop(name), sizes)
    return sizes


def _binds(fact: Fact) -> bool:
    """Whether a fact says nothing but the size of a symbol."""
    return fact.relation == "=" and isinstance(fact.rhs, int) and len(fact.names) == 1


def is_true(fact: Fact, sizes: Mapping[str, int]) -> bool:
    """Whether a fact is true of these sizes."""
    lhs, rhs = evaluate(fact.lhs, sizes), evaluate(fact.rhs, sizes)
    match fact.relation:
        case "|":
            return rhs % lhs == 0
        case "=":
            return lhs == rhs
        case ">=":
            return lhs >= rhs
        case "<=":
            return lhs <= rhs
