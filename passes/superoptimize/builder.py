"""Building a graph of the search node by node."""

from __future__ import annotations

from collections.abc import Sequence

from cleave.passes.superoptimize.graph import Leaf, Node, SearchGraph, Step
from cleave.passes.superoptimize.semantics import Shape


class GraphBuilder:
    """
    Collects leaves and nodes in any order.

    Values are referred to by numbers that stay valid while leaves are still being
    found: node `n` as `n`, leaf `n` as `~n`.
    """

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.nodes: list[Node] = []

    def leaf(self, leaf: Leaf) -> int:
        """A leaf; the same one for equal leaves."""
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        return ~self.leaves.index(leaf)

    def node(self, step: Step, operands: Sequence[int], shapes: Sequence[Shape]) -> int:
        self.nodes.append(Node(step, tuple(operands), tuple(shapes)))
        return len(self.nodes) - 1

    def leaf_of(self, ref: int) -> Leaf | None:
        return self.leaves[~ref] if ref < 0 else None

    def shape(self, ref: int) -> Shape:
        return self.leaves[~ref].shape if ref < 0 else self.nodes[ref].shape

    def finish(self, outputs: Sequence[int]) -> SearchGraph:
        """The graph, without what its outputs do not use."""
        used = set(outputs)
        for number in reversed(range(len(self.nodes))):
            if number in used:
                used.update(self.nodes[number].operands)
        order = [~n for n in range(len(self.leaves)) if ~n in used]
        leaves = tuple(self.leaves[~ref] for ref in order)
        order += [n for n in range(len(self.nodes)) if n in used]
        numbers = {ref: number for number, ref in enumerate(order)}
        nodes = tuple(
            Node(node.step, tuple(numbers[v] for v in node.operands), node.shapes)
            for node in (self.nodes[ref] for ref in order if ref >= 0)
        )
        return SearchGraph(leaves, nodes, tuple(numbers[output] for output in outputs))
