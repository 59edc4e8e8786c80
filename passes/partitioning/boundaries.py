"""
Where a graph is cut once some of its reductions are done.

A boundary belongs to a set of reductions that is closed: with each of them it has all
that they depend on. In front of it is what these alone decide, behind it the other
reductions and what depends on them. Between the two lie elementwise operators, so there
is a choice of what to keep in memory: a minimum cut finds what moves the fewest bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, cast

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType
from cleave.passes.partitioning.draft import element_in_memory, is_leaf, stored
from cleave.passes.partitioning.traffic import Sizes, bytes_of

MOST_SETS = 64
"""How many closed sets of reductions are looked at, the smallest first."""


class Place(Enum):
    """Which values are kept at a boundary."""

    LEAST = 1
    """Those that move the fewest bytes; of several, the last ones computed."""
    RESULTS = 2
    """The results of the matmuls in front, so that nothing is fused behind them."""
    OPERANDS = 3
    """The operands of the matmuls behind, so that nothing is fused in front of them."""


class Boundaries:
    """The boundaries of one graph; reductions are known by their numbers in it."""

    def __init__(self, graph: GraphOp, sizes: Sizes) -> None:
        self.graph = graph
        self.sizes = sizes
        self.reductions = [op for op in graph.operators if op.REDUCTION is not None]
        self.everything = frozenset(range(len(self.reductions)))
        self._numbers = {op: number for number, op in enumerate(self.reductions)}
        self._behind: dict[SSAValue, frozenset[int]] = {
            a: frozenset() for a in graph.inputs
        }
        """The reductions that each value depends on, its own included."""
        for op in graph.operators:
            depends = frozenset[int]().union(*(self._behind[v] for v in op.operands))
            if op in self._numbers:
                depends |= {self._numbers[op]}
            self._behind[op.results[0]] = depends
        self._elements: dict[SSAValue, Attribute] = {
            op.results[0]: element_in_memory(op.results[0], graph)
            for op in graph.operators
        }
        self._outputs = {stored(value) for value in graph.return_op.values}
        self._found: dict[
            tuple[frozenset[int], Place, frozenset[SSAValue]], list[SSAValue]
        ] = {}

    def needs(self, number: int) -> frozenset[int]:
        """The reductions that a reduction depends on."""
        return self._behind[self.reductions[number].results[0]] - {number}

    def closed_sets(self) -> list[frozenset[int]]:
        """The closed sets of reductions, the empty one first, `MOST_SETS` at most."""
        found: dict[frozenset[int], None] = {frozenset(): None}
        for closed in (queue := [frozenset[int]()]):
            for number in sorted(self.everything - closed):
                larger = closed | {number}
                if self.needs(number) <= closed and larger not in found:
                    found[larger] = None
                    queue.append(larger)
            if len(found) >= MOST_SETS:
                break
        return list(found)[:MOST_SETS]

    def outputs_in_front(self, closed: frozenset[int]) -> list[SSAValue]:
        """The outputs that these reductions alone decide."""
        return [v for v in self.graph.return_op.values if self._behind[v] <= closed]

    def keeps_less_than_outputs(self, closed: frozenset[int]) -> bool:
        """Whether what is kept there has fewer bytes than the outputs of the graph."""
        kept = self.kept(closed, Place.LEAST, frozenset())
        kept_bytes = sum(bytes_of(v, self._elements[v], self.sizes) for v in kept)
        output_bytes = sum(
            bytes_of(value, type_.element_type, self.sizes)
            for value, type_ in zip(
                self.graph.return_op.values, self.graph.output_types, strict=True
            )
        )
        return kept_bytes < output_bytes

    def kept(
        self, closed: frozenset[int], place: Place, already: frozenset[SSAValue]
    ) -> list[SSAValue]:
        """
        The values that are kept at the boundary behind a closed set of reductions, in
        the graph's order, where `already` is in memory.
        """
        key = closed, place, already
        if key not in self._found:
            self._found[key] = self._least(*key)
        return list(self._found[key])

    def _least(
        self, closed: frozenset[int], place: Place, already: frozenset[SSAValue]
    ) -> list[SSAValue]:
        import networkx as nx

        networkx: Any = nx  # typed in part only
        network = networkx.DiGraph()
        network.add_nodes_from(("source", "sink"))
        self._add_values(network, closed, place, already)
        # Of several least cuts it is the one nearest to the sink.
        _, (front, _) = networkx.minimum_cut(network, "source", "sink")
        return [
            value
            for value in self._behind
            if ("to", value) in front
            and ("from", value) not in front
            and isinstance(value, OpResult)
            and value not in already
        ]

    def _add_values(
        self,
        network: Any,
        closed: frozenset[int],
        place: Place,
        already: frozenset[SSAValue],
    ) -> None:
        """
        A node `to` each value in front of the boundary and one `from` it; what goes
        from one to the other is what it costs to keep the value.
        """
        for value, depends in self._behind.items():
            if not depends <= closed:
                continue
            cost = self._cost(value, place, already)
            capacity = {} if cost is None else {"capacity": cost}
            network.add_edge(("to", value), ("from", value), **capacity)
            if self._is_source(value, already):
                network.add_edge("source", ("to", value))
            else:
                for operand in cast(Operator, value.owner).operands:
                    network.add_edge(("from", operand), ("to", value))
            if any(self._is_behind(use.operation, closed, place) for use in value.uses):
                network.add_edge(("from", value), "sink")

    def _is_behind(self, user: Operation, closed: frozenset[int], place: Place) -> bool:
        if isinstance(user, Operator):
            return not self._behind[user.results[0]] <= closed
        # Outputs, which otherwise leave in front of the boundary.
        return place is Place.RESULTS or closed == self.everything

    def _is_source(self, value: SSAValue, already: frozenset[SSAValue]) -> bool:
        """Whether a value is there at the boundary, so that it has to be kept."""
        owner = value.owner
        return (
            isinstance(value, BlockArgument)
            or owner in self._numbers
            or value in already
        )

    def _cost(
        self, value: SSAValue, place: Place, already: frozenset[SSAValue]
    ) -> int | None:
        """The bytes moved by keeping a value; None where it is never kept."""
        owner = value.owner
        if isinstance(owner, Operator) and owner.IS_VIEW:
            source = owner.operands[0]
            # A view of an input is never kept, and one that is free need not be.
            if owner.KEEPS_ORDER or is_leaf(source):
                return None
        if place is Place.RESULTS and _is_matmul(owner):
            return 0
        if place is Place.OPERANDS and any(map(_is_matmul, self._readers(value))):
            return 0
        own = cast(TensorType, value.type).element_type
        read = bytes_of(value, self._elements.get(value, own), self.sizes)
        if (
            isinstance(value, BlockArgument)
            or value in already
            or value in self._outputs
        ):
            return read
        return 2 * read

    def _readers(self, value: SSAValue) -> Iterator[Operator]:
        """The operators that use a value or a view of it."""
        for use in value.uses:
            user = use.operation
            if not isinstance(user, Operator):
                continue
            if user.IS_VIEW:
                yield from self._readers(user.results[0])
            else:
                yield user


def _is_matmul(op: object) -> bool:
    return isinstance(op, Operator) and op.ON_TENSOR_CORES
