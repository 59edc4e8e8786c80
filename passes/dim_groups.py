"""
Which dims of a graph have one extent because of how operators use them.

This is the grouping pass of the paper's appendix A (Table 2), with the rules read off
the operators' tensor expressions: two dims that one axis of an operator runs over are
in one group, a dim of size 1 is in none. Views add what the paper has no need for: a
dim may be the product of others (`H * G` seen as [H, G], `K` split into [s, K floordiv
s]).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, floordiv
from cleave.dialects.tensor import TensorType
from cleave.dialects.wording import counted

Place: TypeAlias = tuple[SSAValue, int]
"""A dim of a value, by its axis."""


class DimGroups:
    """
    The groups of a graph's dims, numbered in the order of their first member.

    Raises VerifyException for a reshape that neither merges nor divides whole dims.
    """

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self._parents: dict[object, object] = {}
        self._products: list[tuple[Place, tuple[Place, ...]]] = []
        for op in graph.operators:
            if op.KEEPS_ORDER:
                self._add_reshape(op)
            elif op.operands:
                self._add_expression(op)
        self._unite_factors()
        self._numbers: dict[object, int] = {}
        self.members: list[list[Place]] = []
        """The dims of each group, inputs first."""
        for value in self.values():
            for axis, dim in enumerate(_dims(value)):
                if dim != 1:
                    root = self._root((value, axis))
                    if root not in self._numbers:
                        self._numbers[root] = len(self.members)
                        self.members.append([])
                    self.members[self._numbers[root]].append((value, axis))
        self.products: dict[int, tuple[int, ...]] = {}
        """The groups that a group is the product of, outermost first."""
        for place, factors in self._products:
            numbers = [self.group(*factor) for factor in factors]
            self.products[self._number(place)] = tuple(
                number for number in numbers if number is not None
            )

    def values(self) -> Iterator[SSAValue]:
        """The graph's inputs and the results of its operators, in order."""
        yield from self.graph.inputs
        for op in self.graph.operators:
            yield from op.results

    def group(self, value: SSAValue, axis: int) -> int | None:
        """The number of a dim's group; None for a dim of size 1."""
        return None if _dims(value)[axis] == 1 else self._number((value, axis))

    def dim(self, group: int) -> Dim:
        """The dim as it is written."""
        value, axis = self.members[group][0]
        return _dims(value)[axis]

    def _number(self, place: Place) -> int:
        return self._numbers[self._root(place)]

    # Union-find; a key is a place, or an axis that an operator reduces

    def _root(self, key: object) -> object:
        while (parent := self._parents.get(key, key)) != key:
            key = parent
        return key

    def _unite(self, a: object, b: object) -> None:
        a, b = self._root(a), self._root(b)
        if a != b:
            self._parents[b] = a

    def _unite_factors(self) -> None:
        """
        What dims of one group are products of is in common groups, factor by factor.
        """
        first: dict[object, tuple[Place, ...]] = {}
        changed = True
        while changed:
            changed = False
            first.clear()
            for place, factors in self._products:
                known = first.setdefault(self._root(place), factors)
                if len(known) != len(factors):
                    value, axis = place
                    raise VerifyException(
                        f"{_dims(value)[axis]} is regarded as a product of "
                        f"{counted(len(known), 'dim')} and as a product of "
                        f"{counted(len(factors), 'dim')}"
                    )
                for a, b in zip(known, factors, strict=True):
                    if self._root(a) != self._root(b):
                        self._unite(a, b)
                        changed = True

    # Rules

    def _add_expression(self, op: Operator) -> None:
        expression = op.expression
        result = op.results[0]
        for operand, indices in zip(op.operands, expression.operands, strict=True):
            for axis, index in enumerate(indices):
                if _dims(operand)[axis] == 1:
                    continue
                places = [
                    (result, term.axis) if term.axis < expression.rank else None
                    for term in index
                ]
                if len(index) == 1:
                    reduced = (op, index[0].axis)
                    self._unite(places[0] or reduced, (operand, axis))
                elif len(index) > 1:
                    factors = tuple(place for place in places if place is not None)
                    self._products.append(((operand, axis), factors))

    def _add_reshape(self, op: Operator) -> None:
        (operand,), (result,) = op.operands, op.results
        for before, after in regroupings(_dims(operand), _dims(result)):
            old = tuple((operand, axis) for axis in before)
            new = tuple((result, axis) for axis in after)
            if len(old) == len(new) == 1:
                self._unite(old[0], new[0])
            elif len(old) == 1:
                self._products.append((old[0], new))
            elif len(new) == 1:
                self._products.append((new[0], old))
            else:
                raise VerifyException(
                    f"'{op.name}' op: dims {list(before)} become dims {list(after)}, "
                    "which neither merges dims nor divides one"
                )


def regroupings(
    before: Sequence[Dim], after: Sequence[Dim]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """
    The shortest runs of axes with equal products, for two shapes with equally many
    elements; axes of size 1 are left out.
    """
    old, new = _Run(before), _Run(after)
    while old.step() | new.step():
        while old.product != new.product:
            # The shorter run goes on, the other one where it cannot.
            shorter, longer = (old, new) if _fewer(old, new) else (new, old)
            if not (shorter.step() or longer.step()):
                return
        yield tuple(old.take()), tuple(new.take())


@dataclass
class _Run:
    """A run of axes that grows by one dim that is not 1 at a time."""

    dims: Sequence[Dim]
    position: int = 0
    axes: list[int] = field(default_factory=list[int])
    product: Dim = 1

    def step(self) -> bool:
        while self.position < len(self.dims) and self.dims[self.position] == 1:
            self.position += 1
        if self.position == len(self.dims):
            return False
        self.axes.append(self.position)
        self.product = self.product * self.dims[self.position]
        self.position += 1
        return True

    def take(self) -> list[int]:
        axes, self.axes, self.product = self.axes, [], 1
        return axes


def _fewer(a: _Run, b: _Run) -> bool:
    """Whether `a` has fewer elements than `b`, or at least divides `b`."""
    if isinstance(a.product, int) and isinstance(b.product, int):
        return a.product < b.product
    return floordiv(b.product, a.product) * a.product == b.product


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return cast(TensorType, value.type).dims
