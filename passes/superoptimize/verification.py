"""
The second look: every producer again, with other inputs on other sizes, and in float64.

Values are recomputed from the leaves up, the graph's own operators first. A producer
that does not give the value that it gave in the search is dropped. What is left agrees
on every value, so every graph that can be read off equals the original, in this sample
too; nothing has to be evaluated graph by graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleave.dialects.dims import SymbolicDim
from cleave.passes.superoptimize.derivations import Derivations
from cleave.passes.superoptimize.field import FieldValue
from cleave.passes.superoptimize.graph import (
    Leaf,
    Number,
    SearchGraph,
    Source,
    Step,
    view_leaf,
)
from cleave.passes.superoptimize.modular import key_of
from cleave.passes.superoptimize.sampling import Sample
from cleave.passes.superoptimize.semantics import Dim, Shape, Undefined
from cleave.passes.superoptimize.space import Producer

A = TypeVar("A")

TOLERANCE = 1e-9
"""
Of a producer in float64, relative to the largest element of the value. Between two
operators the order of summation differs, which costs about 1e-15; a wrong operator is
off by about 1.
"""


class Arithmetic(Protocol[A]):
    """A way to evaluate values of the search."""

    def leaf(self, leaf: Leaf) -> A: ...

    def apply(
        self, step: Step, operands: Sequence[A], shapes: Sequence[Shape], result: Shape
    ) -> A:
        """A step on operands to be seen as of the given shapes."""
        ...

    def agree(self, a: A, b: A) -> bool: ...


def drop_disagreeing(derivations: Derivations, arithmetic: Arithmetic[A]) -> int:
    """Drop the producers that do not agree; returns their number."""
    values = _references(derivations, arithmetic)

    def agrees(value: int, producer: Producer) -> bool:
        try:
            result = _applied(derivations, arithmetic, values, value, producer)
        except Undefined:
            return False
        return value in values and arithmetic.agree(result, values[value])

    return derivations.keep(agrees)


def _references(derivations: Derivations, arithmetic: Arithmetic[A]) -> dict[int, A]:
    """Every value as one of its producers gives it, an original one if there is one."""
    values: dict[int, A] = {
        number: arithmetic.leaf(value.leaf)
        for number, value in enumerate(derivations.space.values)
        if value.leaf is not None
    }
    heights = derivations.heights()
    others = [
        (heights[value], value, producer)
        for value in derivations.producers
        for producer in derivations.producers[value]
    ]
    originals = [(value, p) for p, value in derivations.originals.items()]
    for value, producer in originals + [other[1:] for other in sorted(others)]:
        if value not in values and all(v in values for v in producer.operands):
            with suppress(Undefined):
                values[value] = _applied(
                    derivations, arithmetic, values, value, producer
                )
    return values


def _applied(
    derivations: Derivations,
    arithmetic: Arithmetic[A],
    values: Mapping[int, A],
    value: int,
    producer: Producer,
) -> A:
    space = derivations.space
    if any(operand not in values for operand in producer.operands):
        raise Undefined("an operand is not defined")
    return arithmetic.apply(
        space.steps[producer.step],
        [values[operand] for operand in producer.operands],
        space.operand_shapes(producer),
        space.shape(value),
    )


@dataclass(frozen=True)
class InField:
    """Fingerprints of another sample."""

    sample: Sample

    def leaf(self, leaf: Leaf) -> FieldValue:
        return view_leaf(leaf, self.sample.field, self.sample.sources[leaf.source])

    def apply(
        self,
        step: Step,
        operands: Sequence[FieldValue],
        shapes: Sequence[Shape],
        result: Shape,
    ) -> FieldValue:
        aligned = [
            operand.with_rank(len(shape))
            for operand, shape in zip(operands, shapes, strict=True)
        ]
        value = step.interpret(self.sample.field, aligned, shapes)
        return value.with_rank(len(result))

    def agree(self, a: FieldValue, b: FieldValue) -> bool:
        return np.array_equal(a.p, b.p)


class InReals:
    """
    Random float64 arrays, and the operators' NumPy meaning.

    Independent of fingerprints, so it would also notice an operator whose two meanings
    differ. Masks are random, with at least one true element in every row.
    """

    def __init__(
        self,
        graph: SearchGraph,
        extents: Mapping[Dim, int],
        seed: int,
        *,
        positive: bool,
    ) -> None:
        self._extents = extents
        generator = np.random.default_rng(seed)
        self._sources: dict[Source, NDArray[Any]] = {}
        for leaf in graph.leaves:
            if leaf.source in self._sources:
                continue
            match leaf.source:
                case Number(value=float(number)):
                    array = np.array(number)
                case Number(value=value):
                    # A dim; what is equal holds for every number in its place.
                    array = np.array(float(key_of(str(value)) % 7 + 2))
                case _ if leaf.is_mask:
                    array = generator.random(self._shape(leaf.source_shape)) < 0.7
                    array[..., :1] = True
                case _:
                    array = generator.normal(size=self._shape(leaf.source_shape))
                    array = np.abs(array) if positive else array
            self._sources[leaf.source] = array

    def _shape(self, shape: Shape) -> tuple[int, ...]:
        return tuple(self._extents[dim] for dim in shape)

    def leaf(self, leaf: Leaf) -> NDArray[Any]:
        array, shape = self._sources[leaf.source], leaf.source_shape
        for step, result in leaf.views:
            array = self.apply(step, [array], [shape], result)
            shape = result
        return array

    def apply(
        self,
        step: Step,
        operands: Sequence[NDArray[Any]],
        shapes: Sequence[Shape],
        result: Shape,
    ) -> NDArray[Any]:
        extents = self._extents
        params = {
            name: extents[value] if isinstance(value, SymbolicDim) else value
            for name, value in step.params
        }
        seen = [
            operand.reshape(self._shape(shape)) if operand.ndim else operand
            for operand, shape in zip(operands, shapes, strict=True)
        ]
        shape = self._shape(result)
        with np.errstate(all="ignore"):
            return step.operator.numpy(np, seen, params, shape).reshape(shape)

    def outputs(self, graph: SearchGraph) -> list[NDArray[Any]]:
        """The results of a graph whose sources these are."""
        shapes = graph.shapes()
        values = [self.leaf(leaf) for leaf in graph.leaves]
        for number, node in enumerate(graph.nodes, start=len(values)):
            operands = [values[v] for v in node.operands]
            values.append(self.apply(node.step, operands, node.shapes, shapes[number]))
        return [values[output] for output in graph.outputs]

    def agree(self, a: NDArray[Any], b: NDArray[Any]) -> bool:
        with np.errstate(all="ignore"):
            difference = np.abs(a.astype(np.float64) - b)
        scale = np.abs(b).max(initial=0.0, where=np.isfinite(b))
        both = np.isnan(a) & np.isnan(b)
        return bool(np.all(both | (a == b) | (difference <= TOLERANCE * scale)))


def in_reals(
    graph: SearchGraph, extents: Mapping[Dim, int], seed: int
) -> InReals | None:
    """
    Inputs for which the graph's results are finite, of any sign or, for the sake of
    logarithms and roots, positive. None if there are none among those.
    """
    for positive in (False, True):
        reals = InReals(graph, extents, seed, positive=positive)
        if all(np.isfinite(array).all() for array in reals.outputs(graph)):
            return reals
    return None
