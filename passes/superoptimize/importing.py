"""
From `algebra.graph` to a graph of the search.

Dims get symbols of the search's own, one for each group of dims that operators require
to be equal: two dims of one name that need not be equal are told apart, so that they do
not match by accident. Roundings are left out, transpositions that operators ask for
become views, and views of inputs become part of the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.algebra.views import Transpose
from cleave.dialects.dims import Dim, floordiv, symbol
from cleave.dialects.tensor import TensorType
from cleave.passes.dim_groups import DimGroups
from cleave.passes.partitioning.splits import splits_of
from cleave.passes.superoptimize.builder import GraphBuilder
from cleave.passes.superoptimize.graph import (
    Dims,
    Generated,
    Input,
    Leaf,
    Number,
    SearchGraph,
    SplitDim,
    Step,
)
from cleave.passes.superoptimize.masks import Moved, move_behind
from cleave.passes.superoptimize.semantics import Shape
from cleave.passes.superoptimize.transposition import with_transposed_leaves


class ImportFailed(Exception):
    """A graph that cannot be searched; the message says why."""


@dataclass(frozen=True)
class Imported:
    """A graph of the search, and what its dims are called in the original."""

    graph: SearchGraph
    products: dict[Any, tuple[Any, ...]]
    names: dict[Any, Dim]
    """What each dim of the search is in the original."""
    splits: tuple[SplitDim, ...]
    """A split of every dim that some operator reduces and that is not split yet."""
    parts: dict[Any, Any]
    """The size of a part by the count of the parts, of splits in the graph."""
    moved: tuple[Moved, ...]
    """The operators that selections of infinities were moved behind."""
    hinted: SearchGraph
    """A graph with the original's values that have a name as its outputs."""
    hints: tuple[str, ...]
    """Their names."""

    def dims(self, *, split: bool) -> Dims:
        return Dims(self.products, self.splits if split else (), self.parts)


def import_graph(graph: GraphOp) -> Imported:
    """
    Raises:
        ImportFailed: a dim is a number, or a reshape cannot be followed.
    """
    try:
        return _Importer(graph).run()
    except VerifyException as error:
        raise ImportFailed(str(error)) from error


class _Importer:
    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.groups = DimGroups(graph)
        self.names: dict[Any, Dim] = {}
        self.products: dict[Any, tuple[Any, ...]] = {}
        self._dims: dict[int, Any] = {}
        self._builder = GraphBuilder()
        self._refs: dict[SSAValue, int] = {}

    def run(self) -> Imported:
        for position, argument in enumerate(self.graph.inputs):
            self._require_symbols(argument, position)
        for position, argument in enumerate(self.graph.inputs):
            element = _computed(cast(TensorType, argument.type).element_type)
            leaf = Leaf(Input(position), self._shape(argument), element)
            self._refs[argument] = self._builder.leaf(leaf)
        for op in self.graph.operators:
            self._refs[op.results[0]] = self._import(op)
        outputs = [self._refs[value] for value in self.graph.return_op.values]
        graph, moved = move_behind(self._builder.finish(outputs))
        hints = {
            self._refs[value]: value.name_hint
            for value in self.groups.values()
            if value.name_hint is not None
        }
        return Imported(
            graph=with_transposed_leaves(graph),
            products=self.products,
            names=self.names,
            splits=tuple(self._splits()),
            parts=self._parts(),
            moved=tuple(moved),
            hinted=self._builder.finish(list(hints)),
            hints=tuple(hints.values()),
        )

    def _require_symbols(self, argument: SSAValue, position: int) -> None:
        for axis, dim in enumerate(cast(TensorType, argument.type).dims):
            if isinstance(dim, int) and dim != 1:
                raise ImportFailed(
                    f"dim {axis} of input {argument.name_hint or position} is the "
                    f"number {dim}; run symbolize first"
                )

    # Dims

    def _shape(self, value: SSAValue) -> Shape:
        groups = (
            self.groups.group(value, axis)
            for axis in range(cast(TensorType, value.type).rank)
        )
        return tuple(1 if group is None else self._dim(group) for group in groups)

    def _dim(self, group: int) -> Any:
        """The search's dim for a group: a symbol, or the product of its factors'."""
        if group not in self._dims:
            if (factors := self.groups.products.get(group)) is not None:
                dims = tuple(self._dim(factor) for factor in factors)
                dim: Any = 1
                for factor in dims:
                    dim = dim * factor
                self.products[dim] = dims
            else:
                dim = self._fresh_symbol(str(self.groups.dim(group)))
            self._dims[group] = dim
            self.names[dim] = self.groups.dim(group)
        return self._dims[group]

    def _fresh_symbol(self, text: str) -> Any:
        """A symbol with the name of a dim, or a similar one that is not taken."""
        name = text if text.isidentifier() else "d"
        candidates = (name, *(f"{name}_{n}" for n in range(2, len(self.names) + 3)))
        return next(s for s in map(symbol, candidates) if s not in self.names)

    def _parts(self) -> dict[Any, Any]:
        """Of the splits that the graph has: the size of a part by their count."""
        groups = (
            (self.groups.group(value, parts), self.groups.group(value, within))
            for value, parts, within in splits_of(self.graph)
        )
        return {
            self._dim(parts): self._dim(within)
            for parts, within in groups
            if parts is not None and within is not None
        }

    def _splits(self) -> Iterator[SplitDim]:
        parts = self._parts()
        already = {*parts, *parts.values()}
        reduced = dict.fromkeys(
            self.groups.group(operand, axis)
            for op in self.graph.operators
            if not op.IS_VIEW
            for operand, indices in zip(
                op.operands, op.expression.operands, strict=True
            )
            for axis, index in enumerate(indices)
            if any(term.axis >= op.expression.rank for term in index)
        )
        for group in reduced:
            if group is not None and group not in self.groups.products:
                dim = self._dim(group)
                if dim not in already:
                    count = self._fresh_symbol(f"s_{dim}")
                    yield SplitDim(dim, count, floordiv(dim, count))

    # Values

    def _import(self, op: Operator) -> int:
        if not op.operands:
            return self._import_generator(op)
        operands = [self._refs[operand] for operand in op.operands]
        elements = [type_.element_type for type_ in op.operand_types]
        if op.ONLY_ROUNDS and all(
            is_float(element) for element in (*elements, op.result_type.element_type)
        ):
            return operands[0]
        shapes = [
            self._operand_shape(op, position) for position in range(len(operands))
        ]
        params = op.retyped(op.params, self._shape(op.results[0]))
        if op.IS_VIEW:
            return self._viewed(operands[0], Step.of(type(op), params), shapes[0])
        params, permutations = op.without_views(shapes, params)
        for position, permutation in enumerate(permutations):
            if permutation is not None:
                view = Step.of(Transpose, {"permutation": tuple(permutation)})
                shape = shapes[position]
                operands[position] = self._viewed(operands[position], view, shape)
                shapes[position] = view.infer_shape([shape])
        return self._builder.node(Step.of(type(op), params), operands, shapes)

    def _operand_shape(self, op: Operator, position: int) -> Shape:
        """
        The shape in which an operand is taken; numbers are scalars where they can.
        """
        leaf = self._builder.leaf_of(self._refs[op.operands[position]])
        is_number = leaf is not None and isinstance(leaf.source, Number)
        return () if is_number else self._shape(op.operands[position])

    def _viewed(self, ref: int, view: Step, shape: Shape) -> int:
        """A view of a value; of a leaf it is a leaf."""
        leaf = self._builder.leaf_of(ref)
        if leaf is not None and not isinstance(leaf.source, Number):
            return self._builder.leaf(leaf.seen_through(view))
        return self._builder.node(view, [ref], [shape])

    def _import_generator(self, op: Operator) -> int:
        (result,) = op.results
        number = op.number(op.params)
        if number is not None and all(
            _may_be_scalar(use.operation, result) for use in result.uses
        ):
            value = float(number) if isinstance(number, int | float) else number
            return self._builder.leaf(Leaf(Number(value), (), f32))
        shape = self._shape(result)
        source = Generated(Step.of(type(op), op.params), shape)
        return self._builder.leaf(
            Leaf(source, shape, _computed(op.result_type.element_type))
        )


def _may_be_scalar(user: object, value: SSAValue) -> bool:
    """Whether an operator gives a result of the same shape if `value` is a scalar."""
    if not isinstance(user, Operator) or not user.ELEMENTWISE:
        return False
    shapes = [
        () if operand is value else type_.dims
        for operand, type_ in zip(user.operands, user.operand_types, strict=True)
    ]
    return user.infer_shape(shapes, user.params) == user.result_type.dims


def _computed(element: Attribute) -> Attribute:
    """Numbers of every width are the same to the search."""
    return f32 if is_float(element) else element
