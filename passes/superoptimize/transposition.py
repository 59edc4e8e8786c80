"""
Transposed inputs that are worth having as leaves.

The search takes views of computed values only where the graph takes them. A transposed
product is also the product of its transposed operands, the other way round, and so on
down to the inputs; with those views as leaves, nothing between has to be transposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from cleave.passes.superoptimize.graph import Leaf, Node, Number, SearchGraph, Step

Permutation: TypeAlias = tuple[int, ...]


def with_transposed_leaves(graph: SearchGraph) -> SearchGraph:
    """The graph, with the leaves that its transpositions of computed values come to."""
    found: dict[Leaf, None] = {}
    seen: set[tuple[int, Permutation]] = set()
    waiting = [
        (number, tuple(range(len(node.shape))))
        for number, node in enumerate(graph.nodes, start=len(graph.leaves))
        if _permutation(node.step) is not None
    ]
    steps = {_permutation(node.step): node.step for node in graph.nodes}
    transpose = next((step.operator for p, step in steps.items() if p), None)
    while waiting:
        request = waiting.pop()
        if request in seen:
            continue
        seen.add(request)
        value, permutation = request
        if value >= len(graph.leaves):
            waiting.extend(_below(graph.nodes[value - len(graph.leaves)], permutation))
        elif transpose is not None:
            leaf = graph.leaves[value]
            is_number = isinstance(leaf.source, Number)
            if not is_number and permutation != tuple(range(len(permutation))):
                view = Step.of(transpose, {"permutation": permutation})
                found[leaf.seen_through(view)] = None
    extra = tuple(leaf for leaf in found if leaf not in graph.leaves)
    return replace(graph, extra_leaves=extra)


def _permutation(step: Step) -> Permutation | None:
    """The permutation of a transposition."""
    return dict(step.params).get("permutation") if step.operator.IS_VIEW else None


def _below(node: Node, permutation: Permutation) -> Iterator[tuple[int, Permutation]]:
    """What to permute in place of a node's result: its operands, and how."""
    rank = len(permutation)
    if node.step.operator.IS_VIEW:
        if (inner := _permutation(node.step)) is not None:
            yield node.operands[0], tuple(inner[axis] for axis in permutation)
    elif (
        len(node.operands) == 1
        or node.step.operator.ELEMENTWISE
        or sorted(permutation[-2:]) == [rank - 2, rank - 1]
    ):
        for operand, shape in zip(node.operands, node.shapes, strict=True):
            if (trailing := _trailing(permutation, len(shape))) is not None:
                yield operand, trailing


def _trailing(permutation: Sequence[int], rank: int) -> Permutation | None:
    """A permutation of the last `rank` dims only, if it keeps them among themselves."""
    first = len(permutation) - rank
    if first < 0 or rank < 2:
        return None
    last = tuple(axis - first for axis in permutation[first:])
    return last if min(last) >= 0 else None
