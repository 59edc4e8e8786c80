"""
Where a graph is cut once some of its reductions are done.

A boundary belongs to a set of reductions that is closed: with each of them it has all
that they depend on. In front of it is what these alone decide, behind it the other
reductions and what depends on them. Between the two lie elementwise operators, so there
is a choice of what to keep in memory: a minimum cut finds what moves the fewest bytes.

A view that regroups dims of a computed value counts as a reduction: no tile map says
what it does, so what it regroups has to be in memory before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

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


Boundary: TypeAlias = tuple[frozenset[int], Place]
"""A closed set of reductions, and what is kept when they are done."""

OUTPUT = 1 << 62
"""The cost of cutting behind an output, which is no cut at all."""


class Boundaries:
    """The boundaries of one graph; reductions are known by their numbers in it."""

    def __init__(self, graph: GraphOp, sizes: Sizes) -> None:
        self.graph = graph
        self.sizes = sizes
        self.reductions = [
            op
            for op in graph.operators
            if op.REDUCTION is not None or _regroups_inside(op)
        ]
        self.everything = frozenset(range(len(self.reductions)))
        self.numbers = {op: number for number, op in enumerate(self.reductions)}
        self.behind: dict[SSAValue, frozenset[int]] = {
            a: frozenset() for a in graph.inputs
        }
        """The reductions that each value depends on, its own included."""
        for op in graph.operators:
            depends = frozenset[int]().union(*(self.behind[v] for v in op.operands))
            if op in self.numbers:
                depends |= {self.numbers[op]}
            self.behind[op.results[0]] = depends
        self._elements: dict[SSAValue, Attribute] = {
            op.results[0]: element_in_memory(op.results[0], graph)
            for op in graph.operators
        }
        self._outputs = {stored(value) for value in graph.return_op.values}
        self._found: dict[
            tuple[frozenset[int], Place, frozenset[SSAValue]], list[SSAValue]
        ] = {}

    def only_regroups(self, number: int) -> bool:
        """Whether a reduction is none, but a view that stands for one."""
        return self.reductions[number].REDUCTION is None

    def needs(self, number: int) -> frozenset[int]:
        """The reductions that a reduction depends on."""
        return self.behind[self.reductions[number].results[0]] - {number}

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
        return [v for v in self.graph.return_op.values if self.behind[v] <= closed]

    def bytes_of(self, value: SSAValue) -> int:
        """The bytes of a value in memory."""
        own = cast(TensorType, value.type).element_type
        return bytes_of(value, self._elements.get(value, own), self.sizes)

    def is_output(self, value: SSAValue) -> bool:
        return stored(value) in self._outputs

    def keeps_less_than_outputs(self, closed: frozenset[int]) -> bool:
        """Whether what is kept there has fewer bytes than the outputs of the graph."""
        kept = self.kept(closed, Place.LEAST, frozenset())
        kept_bytes = sum(map(self.bytes_of, kept))
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
            self._found[key] = _Network(self, *key).least_cut()
        return list(self._found[key])


@dataclass(frozen=True)
class _Network:
    """
    What is in front of one boundary as a network of flow from what is there, inputs and
    results of reductions, to what is used behind. There is a node `to` each value and
    one `from` it; what goes from one to the other is what it costs to keep the value.
    """

    boundaries: Boundaries
    closed: frozenset[int]
    place: Place
    already: frozenset[SSAValue]

    def least_cut(self) -> list[SSAValue]:
        """The values that are kept."""
        import networkx as nx

        networkx: Any = nx  # typed in part only
        network = networkx.DiGraph()
        network.add_nodes_from(("source", "sink"))
        values = [v for v in self.boundaries.behind if not self._is_behind(v)]
        for value in values:
            self._add(network, value)
        # Of several least cuts it is the one nearest to the sink.
        _, (front, _) = networkx.minimum_cut(network, "source", "sink")
        return [
            value
            for value in values
            if ("to", value) in front
            and ("from", value) not in front
            and isinstance(value, OpResult)
            and value not in self.already
        ]

    def _add(self, network: Any, value: SSAValue) -> None:
        cost = self._cost(value)
        capacity = {} if cost is None else {"capacity": cost}
        network.add_edge(("to", value), ("from", value), **capacity)
        if self._is_there(value):
            network.add_edge("source", ("to", value))
        else:
            for operand in cast(Operator, value.owner).operands:
                network.add_edge(("from", operand), ("to", value))
        for use in value.uses:
            user = use.operation
            if (
                self._is_behind(user.results[0])
                if isinstance(user, Operator)
                else self._sees_outputs
            ):
                network.add_edge(("from", value), "sink")

    @property
    def _sees_outputs(self) -> bool:
        """Whether outputs count as used behind; otherwise they leave in front."""
        return self.place is Place.RESULTS or self.closed == self.boundaries.everything

    def _is_behind(self, value: SSAValue) -> bool:
        return not self.boundaries.behind[value] <= self.closed

    def _is_there(self, value: SSAValue) -> bool:
        """Whether a value cannot be computed anew behind the boundary."""
        is_reduction = value.owner in self.boundaries.numbers
        return isinstance(value, BlockArgument) or is_reduction or value in self.already

    def _cost(self, value: SSAValue) -> int | None:
        """The bytes moved by keeping a value; None where it is never kept."""
        owner = value.owner
        if isinstance(owner, Operator):
            is_free = owner.KEEPS_ORDER or all(map(is_leaf, owner.operands))
            if owner.IS_VIEW and is_free and owner not in self.boundaries.numbers:
                return None  # each piece can have it for itself
            if self.place is Place.RESULTS and owner.ON_TENSOR_CORES:
                return 0
        if any(map(self._wants_in_memory, _readers(value))):
            return 0
        read = self.boundaries.bytes_of(value)
        if isinstance(value, BlockArgument) or stored(value) in self.already:
            return read
        if self.boundaries.is_output(value):
            # It is written anyway; where outputs are used behind, it is one of them.
            return OUTPUT if self._sees_outputs else read
        return 2 * read

    def _wants_in_memory(self, reader: Operator) -> bool:
        """Whether what an operator reads is to be kept, whatever it costs."""
        if not self._is_behind(reader.results[0]) or self.place is Place.RESULTS:
            return False
        if reader.ON_TENSOR_CORES:
            return self.place is Place.OPERANDS
        return reader.IS_VIEW and reader in self.boundaries.numbers


def _readers(value: SSAValue) -> Iterator[Operator]:
    """The operators that use a value or a view of it, and those views."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, Operator):
            yield user
            if user.IS_VIEW:
                yield from _readers(user.results[0])


def _regroups_inside(op: Operator) -> bool:
    """Whether an operator regroups dims of a computed value for another operator."""
    if not op.IS_VIEW or is_leaf(op.operands[0]) or not _is_computed_with(op):
        return False
    try:
        op.expression  # noqa: B018
    except VerifyException:
        return True
    return False


def _is_computed_with(op: Operator) -> bool:
    """Whether something other than a view uses the result of a view."""
    users = [use.operation for use in op.results[0].uses]
    return any(
        isinstance(user, Operator) and (not user.IS_VIEW or _is_computed_with(user))
        for user in users
    )
