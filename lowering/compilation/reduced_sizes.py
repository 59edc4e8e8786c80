"""
Small sizes on which a tile program can be executed tile by tile, and means the same.

A program relies on what was true of the sizes that it was scheduled for: the facts, a
loop of several steps, or a tile that divides its dim, whose tail nobody masks. And a
graph means something else where a dim such as `L - M`, the diagonal of a mask, becomes
negative. So sizes are made smaller one after the other, each as far as all of that
stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, SymbolicDim, evaluate, names_of
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
            if all(_holds(fact, found.sizes) for fact in facts):
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
                for candidate in candidates(name):
                    if candidate >= sizes[name]:
                        continue
                    tried = _settled({**sizes, name: candidate}, self.derived)
                    if all(_holds(fact, tried) for fact in self.facts) and holds(tried):
                        sizes = tried
                        break
        return sizes


@dataclass(frozen=True)
class SignedParams:
    """Symbolic parameters of operators, and which of them are negative."""

    negative: Mapping[SymbolicDim, bool]

    @classmethod
    def of(cls, graph: GraphOp, sizes: Mapping[str, int]) -> SignedParams:
        dims = [value for op in graph.operators for value in op.params.values()]
        return cls(
            {d: evaluate(d, sizes) < 0 for d in dims if isinstance(d, SymbolicDim)}
        )

    def keep(self, sizes: Mapping[str, int]) -> bool:
        """Whether they have the same signs under other sizes."""
        return all(
            (evaluate(dim, sizes) < 0) == negative
            for dim, negative in self.negative.items()
        )


def reduced_sizes(graph: GraphOp, configuration: Configuration) -> dict[str, int]:
    """Small sizes for a program that was scheduled for the sizes of the graph."""
    reduced = list(_reduced(graph, configuration))
    original = GraphSizes.of(graph)
    signed = SignedParams.of(graph, original.sizes)
    relations = [_relation(*each, original.sizes) for each in reduced]

    def candidates(name: str) -> Sequence[int]:
        if step := configuration.reduce.get(name):
            counts = (2, 3, 4, 6, 8, 12, 16, 32)
            return [n for c in counts for n in (c * step, c * step - step // 2)]
        return _candidates(name, configuration)

    def holds(sizes: Mapping[str, int]) -> bool:
        loops = [_relation(*each, sizes) for each in reduced]
        return relations == loops and signed.keep(sizes)

    return original.shrunk(candidates, holds)


def sizes_with_tails(graph: GraphOp, configuration: Configuration) -> dict[str, int]:
    """Small sizes for which the last step of loops is not full, where facts allow."""

    def candidates(name: str) -> Sequence[int]:
        if step := configuration.reduce.get(name):
            return [step + step // 2 + 1]
        return _candidates(name, configuration)

    original = GraphSizes.of(graph)
    return original.shrunk(candidates, SignedParams.of(graph, original.sizes).keep)


def has_full_loops(graph: GraphOp, configuration: Configuration) -> bool:
    """Whether some loop over a reduced dim has no tail, so that nothing masks one."""
    sizes = GraphSizes.of(graph).sizes
    relations = [_relation(*each, sizes) for each in _reduced(graph, configuration)]
    return any(several and full for several, full in relations)


def _candidates(name: str, configuration: Configuration) -> Sequence[int]:
    if tile := configuration.tile.get(name):
        # Several threadblocks, of which the last has a part of a tile.
        return [tile + max(1, tile // 3)]
    return [LARGEST_WHOLE]


def _reduced(graph: GraphOp, configuration: Configuration) -> Iterator[tuple[Dim, int]]:
    """Each reduced dim that is divided, such as `L floordiv s`, and its tile size."""
    for op in graph.operators:
        if op.REDUCTION is not None:
            (extent,) = op.expression.reduced
            for name in names_of(extent) & configuration.reduce.keys():
                yield extent, configuration.reduce[name]


def _relation(extent: Dim, step: int, sizes: Mapping[str, int]) -> tuple[bool, bool]:
    """Whether a loop has several steps, and whether its last one is full."""
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


def _holds(fact: Fact, sizes: Mapping[str, int]) -> bool:
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
