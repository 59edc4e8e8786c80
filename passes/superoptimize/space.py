"""
Values of the search: every distinct tensor once, with all the operators that give it.

A value is known by its type and its fingerprint. Two operators whose results agree give
the same value, whatever graphs they stand in; this is what makes the search small.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from cleave.passes.superoptimize.abstract import Class
from cleave.passes.superoptimize.field import FieldValue
from cleave.passes.superoptimize.graph import Leaf, Step
from cleave.passes.superoptimize.semantics import Shape

TypeId: TypeAlias = int


class Producer(NamedTuple):
    """One way to compute a value: a step (by number) on other values."""

    step: int
    operands: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Value:
    """A distinct tensor."""

    type: TypeId
    fingerprint: FieldValue
    leaf: Leaf | None
    producers: dict[Producer, None] = field(default_factory=dict[Producer, None])
    """In the order in which they were found."""


class Space:
    """
    Interned types, steps and values.

    Every value has at least `rank` dims: missing ones are dims of size 1 in front, and
    further ones of size 1 in front are dropped, because broadcasting does not tell them
    apart. (A reduced split count leaves such a dim.)
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.shapes: list[Shape] = []
        """The shape of each type."""
        self.elements: list[Any] = []
        """The element type of each type."""
        self.seen_as: dict[tuple[int, tuple[TypeId, ...]], tuple[Shape, ...]] = {}
        """
        Shapes without (or with other) leading dims of size 1 that a step takes operands
        of certain types in, where its parameters count dims: views.
        """
        self._type_ids: dict[tuple[Shape, Any], TypeId] = {}
        self._step_ids: dict[Step, int] = {}
        self._value_ids: dict[tuple[TypeId, bytes], int] = {}
        self.nodes: list[tuple[Class, int]] = []
        """Values with each of their classes, in the order in which they were found."""
        self._known_nodes: set[tuple[Class, int]] = set()

    def aligned(self, shape: Shape) -> Shape:
        """A shape with as many leading dims of size 1 as every value here has."""
        excess = len(shape) - self.rank
        if excess <= 0:
            return (1,) * -excess + shape
        leading = next((i for i in range(excess) if shape[i] != 1), excess)
        return shape[leading:]

    def type_of(self, shape: Shape, element: Any) -> TypeId:
        key = (self.aligned(shape), element)
        if (known := self._type_ids.get(key)) is None:
            known = self._type_ids[key] = len(self.shapes)
            self.shapes.append(key[0])
            self.elements.append(element)
        return known

    def step_of(self, step: Step) -> int:
        if (known := self._step_ids.get(step)) is None:
            known = self._step_ids[step] = len(self.steps)
            self.steps.append(step)
        return known

    def find(self, type_: TypeId, fingerprint: bytes) -> int | None:
        return self._value_ids.get((type_, fingerprint))

    def intern(
        self, type_: TypeId, fingerprint: FieldValue, leaf: Leaf | None = None
    ) -> int:
        """The number of the value with this type and fingerprint, which may be new."""
        rank = len(self.shapes[type_])
        if fingerprint.rank != rank:
            fingerprint = fingerprint.with_rank(rank)
        key = (type_, fingerprint.p.tobytes())
        if (known := self._value_ids.get(key)) is None:
            known = self._value_ids[key] = len(self.values)
            self.values.append(Value(type_, fingerprint, leaf))
            return known
        value = self.values[known]
        if value.fingerprint.q is None and fingerprint.q is not None:
            value.fingerprint = fingerprint
        return known

    def add_node(self, cls: Class, value: int) -> None:
        """
        Note that a value has a class; it then waits to be combined with the others.
        """
        node = (cls, value)
        if node not in self._known_nodes:
            self._known_nodes.add(node)
            self.nodes.append(node)

    def shape(self, value: int) -> Shape:
        return self.shapes[self.values[value].type]

    def operand_shapes(self, producer: Producer) -> tuple[Shape, ...]:
        """The shapes in which a producer takes its operands."""
        types = tuple(self.values[operand].type for operand in producer.operands)
        if (shapes := self.seen_as.get((producer.step, types))) is not None:
            return shapes
        return tuple(self.shapes[type_] for type_ in types)

    def cost(self, producer: Producer) -> int:
        """Views are free; every other operator counts as one (paper, Table 1: n)."""
        return 0 if self.steps[producer.step].operator.IS_VIEW else 1

    def reachable(self, values: Iterable[int]) -> set[int]:
        """
        The values that some derivation of the given ones uses, themselves included.
        """
        seen: set[int] = set()
        waiting = list(values)
        while waiting:
            if (value := waiting.pop()) not in seen:
                seen.add(value)
                for producer in self.values[value].producers:
                    waiting.extend(producer.operands)
        return seen
