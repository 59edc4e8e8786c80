"""Graphs compared by how they are written, up to order and sharing of operators."""

from __future__ import annotations

from collections.abc import Hashable

from cleave.passes.superoptimize.graph import Leaf, SearchGraph


class Expressions:
    """
    Numbers for the expressions that values stand for, the same for equal ones.

    Two graphs whose outputs have the same numbers apply the same operators to the same
    operands; operands of commutative operators may be in any order.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of_outputs(self, graph: SearchGraph) -> tuple[int, ...]:
        values = self.of_values(graph)
        return tuple(values[output] for output in graph.outputs)

    def of_values(self, graph: SearchGraph) -> list[int]:
        values = [self.of_leaf(leaf) for leaf in graph.leaves]
        for node in graph.nodes:
            operands = [values[v] for v in node.operands]
            if node.step.operator.commutes():
                operands.sort()
            values.append(self._number((node.step, tuple(operands))))
        return values

    def of_leaf(self, leaf: Leaf) -> int:
        return self._number(leaf)

    def _number(self, expression: Hashable) -> int:
        return self._numbers.setdefault(expression, len(self._numbers))
