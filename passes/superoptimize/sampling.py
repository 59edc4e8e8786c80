"""
Inputs for fingerprints: random, and such that the graph's square roots are roots.

In the field `root(x) ** 2 == x` holds only for squares, half of the residues, as in the
reals only for non-negative numbers. So inputs are drawn again, element by element,
until everything that the graph takes a root of is a square:
first it is found which elements each radicand depends on, and then those of the
radicands that are no squares are redrawn. Where that does not succeed the laws of roots
are lost, and with them some graphs; nothing becomes unsound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleave.passes.superoptimize.builder import GraphBuilder
from cleave.passes.superoptimize.field import TRIALS, Field, FieldValue, Radicand
from cleave.passes.superoptimize.graph import Node, Number, SearchGraph, Source
from cleave.passes.superoptimize.modular import Array, P, Q
from cleave.passes.superoptimize.semantics import Dim, Shape, Undefined
from cleave.passes.superoptimize.signs import Sign, Signed, Signs

_ATTEMPTS = 8
_ROUNDS = 100
_LARGEST = 2000
"""Elements under roots up to which it is worth finding out what roots depend on."""
_AT_ONCE = 1 << 18
"""
Elements of all tensors and samples that are evaluated at once for that. Each takes some
dozens of bytes while it is computed.
"""


@dataclass(frozen=True)
class Sample:
    """A field, and the values of a graph's sources in it."""

    field: Field
    sources: Mapping[Source, FieldValue]
    roots_hold: bool
    """Whether the argument of every square root of the graph is a square."""


def draw(graph: SearchGraph, extents: Mapping[Dim, int], seed: int) -> Sample:
    """
    Draw inputs for which the graph is defined.

    Raises Undefined if it is not defined for any inputs, say because it divides by
    zero.
    """
    error: Undefined | None = None
    for attempt in range(_ATTEMPTS):
        try:
            return _Sampler(graph, extents, seed * _ATTEMPTS + attempt).draw()
        except Undefined as undefined:
            error = undefined
    assert error is not None
    raise error


class _Sampler:
    def __init__(
        self, graph: SearchGraph, extents: Mapping[Dim, int], seed: int
    ) -> None:
        self.graph = graph
        self.extents = extents
        self.seed = seed
        self.field = Field(seed, extents.__getitem__)
        self.under_roots = _under_roots(graph)

    def draw(self) -> Sample:
        tensors = self._random(self.graph)
        self.graph.results(self.field, self._with_numbers(self.field, tensors))
        below = {s: tensors[s] for s in _shapes(self.under_roots)}
        radicands, is_square = self._radicands(self.field, below)
        elements = sum(tensor.p.size // TRIALS for tensor in below.values())
        if not is_square.all() and elements <= _LARGEST:
            depends = self._dependencies(below, radicands)
            for _ in range(_ROUNDS):
                self._redraw(below, depends, is_square)
                _, is_square = self._radicands(self.field, below)
                if is_square.all():
                    break
            # What was drawn again may divide by zero elsewhere.
            tensors |= below
            self.graph.results(self.field, self._with_numbers(self.field, tensors))
        sources = self._with_numbers(self.field, tensors)
        return Sample(self.field, sources, bool(is_square.all()))

    def _random(self, graph: SearchGraph) -> dict[Source, FieldValue]:
        shapes = _shapes(graph)
        return {source: self.field.random(shape) for source, shape in shapes.items()}

    def _with_numbers(
        self, field: Field, tensors: Mapping[Source, FieldValue]
    ) -> dict[Source, FieldValue]:
        values = dict(tensors)
        for leaf in self.graph.leaves:
            if isinstance(leaf.source, Number):
                values[leaf.source] = field.number(leaf.source.value)
        return values

    def _radicands(
        self, field: Field, tensors: Mapping[Source, FieldValue]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """The elements under roots, [samples, elements], and which are squares."""
        found: list[Radicand] = []
        field.radicands = found
        self.under_roots.results(field, self._with_numbers(field, tensors))
        field.radicands = None
        if not found:
            nothing = np.ones((len(field.trial), 0), dtype=np.int64)
            return nothing, nothing > 0
        return _joined([r.p for r in found]), _joined([r.is_square for r in found])

    def _dependencies(
        self, tensors: Mapping[Source, FieldValue], radicands: Array
    ) -> NDArray[np.bool_]:
        """
        Which elements of the inputs each element under a root depends on: [elements
        under roots, elements of inputs]. Found by changing one input element at a time,
        in as many samples together as `_AT_ONCE` has room for.
        """
        elements = sum(tensor.p.size // TRIALS for tensor in tensors.values())
        shapes = [
            *(leaf.source_shape for leaf in self.under_roots.leaves),
            *self.under_roots.shapes(),
        ]
        a_sample = sum(prod(map(self.extents.__getitem__, s)) for s in shapes)
        samples = max(1, _AT_ONCE // (TRIALS * a_sample)) * TRIALS
        depends = np.empty((radicands.shape[1], elements), dtype=np.bool_)
        for start in range(0, elements, samples):
            field = Field(self.seed, self.extents.__getitem__, samples)
            changed = _changed(field, tensors, start)
            different = self._radicands(field, changed)[0] != radicands[field.trial]
            here = slice(start, start + samples)
            depends[:, here] = different[: elements - start].T
        return depends

    def _redraw(
        self,
        tensors: dict[Source, FieldValue],
        depends: NDArray[np.bool_],
        is_square: NDArray[np.bool_],
    ) -> None:
        """
        Draw again what non-squares depend on, but not what squares depend on too, where
        that leaves anything.
        """
        wrong = np.stack([depends[~squares].any(axis=0) for squares in is_square])
        right = np.stack([depends[squares].any(axis=0) for squares in is_square])
        only_wrong = wrong & ~right
        mask = np.where(only_wrong.any(axis=1, keepdims=True), only_wrong, wrong)
        start = 0
        for source, fresh in self._random(self.under_roots).items():
            tensor = tensors[source]
            size = tensor.p.size // TRIALS
            tensors[source] = _where(mask[:, start : start + size], fresh, tensor)
            start += size


def _shapes(graph: SearchGraph) -> dict[Source, Shape]:
    """The sources of a graph that are no numbers, with their shapes."""
    return {
        leaf.source: leaf.source_shape
        for leaf in graph.leaves
        if not isinstance(leaf.source, Number)
    }


def _under_roots(graph: SearchGraph) -> SearchGraph:
    """The operators that take roots, and what they need."""
    first = len(graph.leaves)
    builder = GraphBuilder()
    refs = [builder.leaf(leaf) for leaf in graph.leaves]
    for node in graph.nodes:
        operands = [refs[v] for v in node.operands]
        refs.append(builder.node(node.step, operands, node.shapes))
    return builder.finish(
        [
            ref
            for ref, node in zip(refs[first:], graph.nodes, strict=True)
            if _takes_root(node)
        ]
    )


def _takes_root(node: Node) -> bool:
    """Whether an operator needs an operand that is not negative: logarithms do, too."""
    signs = Signs(assuming=True)
    operands = [Signed(Sign.UNKNOWN, n) for n in range(len(node.operands))]
    node.step.interpret(signs, operands, node.shapes)
    return any(Sign.NON_NEGATIVE in sign for sign in signs.assumed.values())


def _changed(
    field: Field, tensors: Mapping[Source, FieldValue], start: int
) -> dict[Source, FieldValue]:
    """
    The tensors of each sample's trial, in sample i with another value for element
    `start + i` of all of them one after the other.
    """
    position = start + np.arange(len(field.trial))
    changed: dict[Source, FieldValue] = {}
    for source, tensor in tensors.items():
        size = tensor.p.size // TRIALS
        value = tensor.map(lambda x: x[field.trial])
        (samples,) = np.nonzero((position >= 0) & (position < size))
        here = samples, position[samples]
        for array, modulus in ((value.p, P), (value.q, Q)):
            assert array is not None
            elements = array.reshape(-1, size)
            # The next residue that is not zero.
            elements[here] = elements[here] % (modulus - 1) + 1
        changed[source] = value
        position -= size
    return changed


def _where(mask: NDArray[np.bool_], a: FieldValue, b: FieldValue) -> FieldValue:
    """`a` where the mask [samples, elements] holds, else `b`."""
    mask = mask.reshape(a.p.shape)
    assert a.q is not None
    assert b.q is not None
    return FieldValue(np.where(mask, a.p, b.p), np.where(mask, a.q, b.q))


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All elements of every sample side by side: [samples, elements]."""
    return np.concatenate([x.reshape(len(x), -1) for x in arrays], axis=1)
