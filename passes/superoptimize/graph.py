"""
Graphs of the search: plain, immutable data, and their evaluation in any domain.

Values are numbered, leaves first and then the nodes in order. A leaf is an input, a
number or a generated tensor, seen through views that cost nothing: transposed, reshaped
or split. Shapes are tuples of dims, and everything numeric is of one element type,
since roundings are not part of the algebra.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

from xdsl.dialects.builtin import i1

from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.semantics import (
    Dim,
    Domain,
    Shape,
    V,
)

FrozenParams: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Step:
    """An operator with its parameters."""

    operator: type[Operator]
    params: FrozenParams = ()

    @classmethod
    def of(cls, operator: type[Operator], params: Mapping[str, Any]) -> Step:
        return cls(operator, tuple(sorted(params.items())))

    def infer_shape(self, shapes: Sequence[Shape]) -> Shape:
        return self.operator.infer_shape(shapes, dict(self.params))

    def reduced(self, shapes: Sequence[Shape]) -> tuple[Dim, ...]:
        """The dims that are reduced; none for a view, which has no expression."""
        if self.operator.IS_VIEW:
            return ()
        return self.operator.tensor_expression(shapes, dict(self.params)).reduced

    def interpret(
        self, domain: Domain[V], values: Sequence[V], shapes: Sequence[Shape]
    ) -> V:
        return self.operator.interpret(domain, values, shapes, dict(self.params))

    def __str__(self) -> str:
        params = "".join(f" {name}={value}" for name, value in self.params)
        return f"{self.operator.name}{params}"


@dataclass(frozen=True)
class Input:
    """An input by its position in the graph's signature."""

    position: int


@dataclass(frozen=True)
class Number:
    """A scalar: a float or a dim."""

    value: Any


@dataclass(frozen=True)
class Generated:
    """
    A tensor computed from positions, or filled with a number; generic to the search.
    """

    step: Step
    shape: Shape


Source: TypeAlias = Input | Number | Generated


@dataclass(frozen=True)
class Leaf:
    """A source, and the views of it one after the other, each with its result shape."""

    source: Source
    source_shape: Shape
    element: Any
    views: tuple[tuple[Step, Shape], ...] = ()

    @property
    def shape(self) -> Shape:
        return self.views[-1][1] if self.views else self.source_shape

    @property
    def is_mask(self) -> bool:
        return self.element == i1

    def seen_through(self, step: Step) -> Leaf:
        """This leaf under one more view."""
        view = (step, step.infer_shape([self.shape]))
        return Leaf(self.source, self.source_shape, self.element, (*self.views, view))


@dataclass(frozen=True)
class Node:
    """
    A step on values. It takes them in the given shapes, which may have more or fewer
    dims of size 1 in front than the values have.
    """

    step: Step
    operands: tuple[int, ...]
    shapes: tuple[Shape, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return self.step.infer_shape(self.shapes)


@dataclass(frozen=True)
class SearchGraph:
    leaves: tuple[Leaf, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    extra_leaves: tuple[Leaf, ...] = ()
    """Other views of sources that the search may use beside the leaves."""

    @property
    def cost(self) -> int:
        """The number of operators that compute something."""
        return sum(not node.step.operator.IS_VIEW for node in self.nodes)

    def arithmetic(self, extents: Mapping[Dim, int]) -> int:
        """The number of points that all operators compute, reduced dims included."""
        total = 0
        for node in self.nodes:
            if not node.step.operator.IS_VIEW:
                reduced = node.step.reduced(node.shapes)
                total += prod(extents[dim] for dim in (*node.shape, *reduced))
        return total

    def dims(self) -> set[Dim]:
        """Every dim that occurs in a shape."""
        shapes = self.shapes()
        for leaf in (*self.leaves, *self.extra_leaves):
            shapes += [leaf.source_shape, *(shape for _, shape in leaf.views)]
        return {dim for shape in shapes for dim in shape}

    def shapes(self) -> list[Shape]:
        """The shape of every value."""
        leaves = [leaf.shape for leaf in self.leaves]
        return leaves + [node.shape for node in self.nodes]

    def elements(self) -> list[Any]:
        """The element type of every value."""
        elements = [leaf.element for leaf in self.leaves]
        for node in self.nodes:
            operator, params = node.step.operator, dict(node.step.params)
            operands = [elements[v] for v in node.operands]
            elements.append(operator.infer_element_type(operands, params))
        return elements

    def evaluate(self, domain: Domain[V], sources: Mapping[Source, V]) -> list[V]:
        """Every value in a domain, from the values of the sources there."""
        shapes = self.shapes()
        values = [view_leaf(leaf, domain, sources[leaf.source]) for leaf in self.leaves]
        for node in self.nodes:
            operands = [values[v] for v in node.operands]
            values.append(_result(node, domain, operands, shapes))
        return values

    def results(self, domain: Domain[V], sources: Mapping[Source, V]) -> list[V]:
        """The outputs in a domain. Other values are held only as long as needed."""
        shapes, first = self.shapes(), len(self.leaves)
        last: dict[int, int] = {}
        for number, node in enumerate(self.nodes, start=first):
            last.update(dict.fromkeys(node.operands, number))
        last.update(dict.fromkeys(self.outputs, len(shapes)))
        values: dict[int, V] = {}

        def value(number: int) -> V:
            if number not in values:
                leaf = self.leaves[number]
                values[number] = view_leaf(leaf, domain, sources[leaf.source])
            return values[number]

        for number, node in enumerate(self.nodes, start=first):
            operands = [value(v) for v in node.operands]
            values[number] = _result(node, domain, operands, shapes)
            for v in {number, *node.operands}:
                if last.get(v, number) == number:
                    del values[v]
        return [value(output) for output in self.outputs]


def _result(
    node: Node, domain: Domain[V], operands: Sequence[V], shapes: Sequence[Shape]
) -> V:
    """A node's value; `shapes` are those of all values of the graph."""
    fitting = [
        value if shapes[v] == shape else domain.reshape(value, shape)
        for v, value, shape in zip(node.operands, operands, node.shapes, strict=True)
    ]
    return node.step.interpret(domain, fitting, node.shapes)


def view_leaf(leaf: Leaf, domain: Domain[V], source: V) -> V:
    """A leaf's value from its source's."""
    value, shape = source, leaf.source_shape
    for step, result in leaf.views:
        value = step.interpret(domain, [value], [shape])
        shape = result
    return value


@dataclass(frozen=True)
class SplitDim:
    """`dim` in `count` parts of extent `part`."""

    dim: Dim
    count: Dim
    part: Dim


@dataclass(frozen=True)
class Dims:
    """
    What the search knows about dims: which are products, and small extents for them.

    `products` gives a dim as a product of others (`H * G` seen as [H, G]); `splits` are
    the dims that may be split, each a product of its count and its part; `parts` has
    the part by its count for dims that the graph splits itself.
    """

    products: Mapping[Dim, tuple[Dim, ...]]
    splits: tuple[SplitDim, ...] = ()
    parts: Mapping[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    def primes(self, dim: Dim) -> tuple[Dim, ...]:
        """The dims that `dim` is the product of, outermost first."""
        if dim == 1:
            return ()
        for split in self.splits:
            if split.dim == dim:
                return (split.count, split.part)
        if (product := self.products.get(dim)) is None:
            return (dim,)
        return tuple(prime for factor in product for prime in self.primes(factor))

    def extents(self, dims: Iterable[Dim], size: int) -> dict[Dim, int]:
        """
        Extents for the given dims, their primes and their products.

        Every prime has the same: they need not differ, because which shapes fit is
        decided by name. The parts of a split dim have 2 elements.
        """
        extents: dict[Dim, int] = {}
        extents.update((split.part, 2) for split in self.splits)
        dims = {1, *dims, *(split.dim for split in self.splits)}
        for dim in dims:
            for prime in self.primes(dim):
                extents.setdefault(prime, size)
        for dim in dims:
            extents[dim] = prod(extents[prime] for prime in self.primes(dim))
        return extents
