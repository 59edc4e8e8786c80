"""
Moves: the ways in which the closure applies operators.

A move is an operator with at most two operands left open. Operators with more operands
(`select`) are applied with leaves in the places where the graph has leaves, say a mask
and a number; so they cost no more than the others. Views of computed values are taken
only where the graph takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.abstract import Class
from cleave.passes.superoptimize.graph import FrozenParams, Node, SearchGraph
from cleave.passes.superoptimize.semantics import Params, Shape
from cleave.passes.superoptimize.space import TypeId

T = TypeVar("T")


@dataclass(frozen=True)
class Operand:
    """A value with one of its classes."""

    value: int
    type: TypeId
    cls: Class


@dataclass(frozen=True)
class Move:
    """An operator, some of whose operands are fixed, with the parameters to try."""

    operator: type[Operator]
    seen: tuple[FrozenParams, ...]
    open: int
    """The number of operands left open: 1 or 2."""
    fixed: tuple[tuple[int, Operand], ...] = ()
    """The others, by position."""
    of_shape: Shape | None = None
    """If given, only a value of this shape, with just these dims, is taken."""

    @property
    def commutative(self) -> bool:
        return self.open == 2 and not self.fixed and self.operator.commutes()

    def params(self, shapes: Sequence[Shape]) -> Sequence[Params]:
        return self.operator.search_params(
            shapes, [dict(params) for params in self.seen]
        )

    def fill(self, open_: Sequence[T], of: Callable[[Operand], T]) -> tuple[T, ...]:
        """What belongs to all operands in order, `of(operand)` for the fixed ones."""
        if not self.fixed:
            return tuple(open_)
        filled = list(open_)
        for position, operand in self.fixed:
            filled.insert(position, of(operand))
        return tuple(filled)


def moves_of(
    graph: SearchGraph,
    companions: Sequence[type[Operator]],
    leaves: Mapping[int, Sequence[Operand]],
) -> list[Move]:
    """
    The moves for a graph: its own operators, and companions that may stand beside them.

    `leaves` gives for each leaf of the graph the forms in which it may be used (as it
    is, and split).
    """
    seen: dict[type[Operator], dict[FrozenParams, None]] = {}
    moves: dict[Move, None] = {}
    for node in graph.nodes:
        operator = node.step.operator
        if operator.IS_VIEW:
            (shape,) = node.shapes
            moves[Move(operator, (node.step.params,), 1, of_shape=shape)] = None
        else:
            seen.setdefault(operator, {})[node.step.params] = None
            if len(node.operands) > 2:
                for fixed in _fixed_operands(node, leaves):
                    if 1 <= (free := len(node.operands) - len(fixed)) <= 2:
                        moves[Move(operator, (node.step.params,), free, fixed)] = None
    for companion in companions:
        seen.setdefault(companion, {})
    for operator, params in seen.items():
        if operator.ARITY <= 2:
            moves[Move(operator, tuple(params), operator.ARITY)] = None
    return list(moves)


def _fixed_operands(
    node: Node, leaves: Mapping[int, Sequence[Operand]]
) -> Iterator[tuple[tuple[int, Operand], ...]]:
    """A node's leaves by position, once for each combination of their forms."""
    places = [place for place, operand in enumerate(node.operands) if operand in leaves]
    forms = [leaves[node.operands[place]] for place in places]
    for choice in product(*forms):
        yield tuple(zip(places, choice, strict=True))
