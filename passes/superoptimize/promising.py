"""
Which of many equal graphs are worth going on with, by a key that costs next to nothing.

Where factors may stand in several places, a graph has hundreds of equals that differ in
nothing else. Each takes 0.1-0.3 s to be divided into kernels and scheduled, for which a
search has no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

from cleave.dialects.algebra.views import Split
from cleave.dialects.dims import evaluate, names_of
from cleave.passes.superoptimize.graph import Node, SearchGraph
from cleave.passes.superoptimize.importing import Imported
from cleave.passes.superoptimize.semantics import Dim

INSTRUCTION_POINTS = 16
"""Points of a matmul that tensor cores compute while all lanes issue one instruction
each: 4096 operations a clock, two a point, to 128 lanes (H200)."""
EXPONENTIAL_POINTS = 128
"""The same of a special function, of which there are 16 a clock."""
UNKNOWN_SIZE = 1024
"""Taken for a size that no fact binds."""
SPLIT_COUNT = 8
"""Taken for the parts of a split dim."""

Kind: TypeAlias = tuple[object, ...]


def promising(
    graphs: Sequence[SearchGraph],
    imported: Imported,
    sizes: Mapping[str, int],
    count: int,
) -> list[SearchGraph]:
    """
    All graphs as they are, or, if there are more, the `count` most promising in the
    order of promise. `sizes` is what is known of the symbols of the original.

    Graphs are of one kind if they split the same dims, their matmuls read the same
    operands from memory, and as many whole tensors have several uses, so that they are
    kept or computed again. That decides what kernels they can be: the key cannot tell
    what it is worth, but it tells graphs of one kind apart by what they compute. So the
    best of every kind come first, then the second best, and so on.
    """
    if len(graphs) <= count:
        return list(graphs)
    extents = Extents(imported, sizes)
    works = [work(graph, extents) for graph in graphs]
    seen: Counter[Kind] = Counter()
    places: list[tuple[int, int, int]] = []
    for index in sorted(range(len(graphs)), key=works.__getitem__):
        own = kind(graphs[index])
        places.append((seen[own], works[index], index))
        seen[own] += 1
    return [graphs[index] for *_, index in sorted(places)[:count]]


def work(graph: SearchGraph, extents: Mapping[Dim, int]) -> int:
    """What a graph computes, in points of a matmul that take as long."""
    total = 0
    for node in graph.nodes:
        operator = node.step.operator
        if operator.IS_VIEW:
            continue
        dims = (*node.shape, *node.step.reduced(node.shapes))
        cost = 1
        if not operator.ON_TENSOR_CORES:
            cost = INSTRUCTION_POINTS * operator.INSTRUCTIONS
            cost = max(cost, EXPONENTIAL_POINTS * operator.EXPONENTIALS)
        total += cost * prod(extents[dim] for dim in dims)
    return total


def kind(graph: SearchGraph) -> Kind:
    """What makes graphs of several kinds; see `promising`."""
    views = [step for leaf in graph.leaves for step, _ in leaf.views]
    splits = [dict(step.params)["count"] for step in views if step.operator is Split]
    leaves = len(graph.leaves)
    read: Counter[object] = Counter()
    uses: Counter[int] = Counter()
    for node in graph.nodes:
        sources = [_source(graph, value) for value in node.operands]
        if not node.step.operator.IS_VIEW:
            uses.update(set(sources))
        if node.step.operator.ON_TENSOR_CORES:
            shapes = (*node.shapes, node.shape)
            read[shapes, tuple(value < leaves for value in sources)] += 1
    kept = Counter(
        node.shape
        for value, node in enumerate(graph.nodes, leaves)
        if uses[value] > 1 and 1 not in node.shape
    )
    return (frozenset(splits), frozenset(read.items()), frozenset(kept.items()))


def _source(graph: SearchGraph, value: int) -> int:
    """The value that another one is a view of, or itself."""
    first = len(graph.leaves)
    while value >= first and _node(graph, value).step.operator.IS_VIEW:
        (value,) = _node(graph, value).operands
    return value


def _node(graph: SearchGraph, value: int) -> Node:
    return graph.nodes[value - len(graph.leaves)]


class Extents(dict[Any, int]):
    """The extents of the dims of a search, as far as sizes are known."""

    def __init__(self, imported: Imported, sizes: Mapping[str, int]) -> None:
        super().__init__({1: 1})
        self._names = imported.names
        self._sizes = sizes
        for split in imported.splits:
            self[split.count] = SPLIT_COUNT
            self[split.part] = max(1, self[split.dim] // SPLIT_COUNT)

    def __missing__(self, dim: Any) -> int:
        name = self._names[dim]
        sizes = {each: self._sizes.get(each, UNKNOWN_SIZE) for each in names_of(name)}
        self[dim] = evaluate(name, sizes)
        return self[dim]
