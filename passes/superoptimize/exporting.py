"""
From graphs of the search back to `algebra.graph`.

Dims get their original names again, and a split that a graph uses gets a symbol and the
fact that it divides its dim. Where the search saw a value with other dims of size 1 in
front than it has, a reshape is put in unless the operator does not mind.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.canonicalization import (
    MatmulOfTranspose,
    ReshapeOfReshape,
    TransposeOfTranspose,
)
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.algebra.views import Reshape, Split, Transpose
from cleave.dialects.dims import Dim, floordiv, symbol
from cleave.dialects.facts import Fact
from cleave.dialects.tensor import TensorType
from cleave.passes.superoptimize.expressions import Expressions
from cleave.passes.superoptimize.graph import (
    Generated,
    Input,
    Leaf,
    Node,
    Number,
    SearchGraph,
    Step,
)
from cleave.passes.superoptimize.importing import Imported
from cleave.passes.superoptimize.masks import move_in_front
from cleave.passes.superoptimize.semantics import Shape


class Exporter:
    """Makes candidates for one original graph."""

    def __init__(self, original: GraphOp, imported: Imported) -> None:
        self.original = original
        self.imported = imported
        self.expressions = Expressions()
        hints = self.expressions.of_values(imported.hinted)
        self.hints = {
            hints[value]: hint
            for value, hint in zip(imported.hinted.outputs, imported.hints, strict=True)
        }

    def export(
        self, graph: SearchGraph, name: str, attributes: dict[str, Attribute]
    ) -> GraphOp:
        graph = move_in_front(graph, self.imported.moved)
        splits = self._splits_in(graph)
        original = self.original
        names = self.imported.names
        divides = (Fact(parts, "|", names[dim]) for dim, parts in splits.items())
        body = _Body(self, graph, splits).build()
        result = GraphOp(
            name,
            [*original.symbol_names, *(str(parts) for parts in splits.values())],
            [*original.facts, *divides],
            original.output_types,
            body,
            attributes,
        )
        patterns: list[RewritePattern] = [
            MatmulOfTranspose(),
            TransposeOfTranspose(),
            ReshapeOfReshape(),
        ]
        applier = GreedyRewritePatternApplier(patterns)
        PatternRewriteWalker(applier).rewrite_region(result.body)
        return result

    def _splits_in(self, graph: SearchGraph) -> dict[Any, Dim]:
        """
        The split dims of a graph, with the symbols for the numbers of their parts.
        """
        dims = {dim for leaf in graph.leaves for dim in leaf.shape}
        used = [split for split in self.imported.splits if split.count in dims]
        taken = set(self.original.symbol_names)
        symbols: dict[Any, Dim] = {}
        for split in used:
            dim = str(self.imported.names[split.dim])
            wanted = "s" if len(used) == 1 else f"s_{dim}"
            names = (wanted, *(f"{wanted}{n}" for n in range(2, len(taken) + 3)))
            name = next(n for n in names if n not in taken and n.isidentifier())
            taken.add(name)
            symbols[split.dim] = symbol(name)
        return symbols


class _Body:
    """The operators of one candidate."""

    def __init__(
        self, exporter: Exporter, graph: SearchGraph, splits: Mapping[Any, Dim]
    ) -> None:
        self.exporter = exporter
        self.graph = graph
        self.block = Block(arg_types=exporter.original.input_types)
        self.names = dict(exporter.imported.names)
        for split in exporter.imported.splits:
            if split.dim in splits:
                self.names[split.count] = splits[split.dim]
                whole = exporter.imported.names[split.dim]
                self.names[split.part] = floordiv(whole, splits[split.dim])
        self._reshaped: dict[tuple[SSAValue, Shape], SSAValue] = {}
        self._viewed: dict[Leaf, SSAValue] = {}

    def build(self) -> Block:
        arguments = zip(self.exporter.original.inputs, self.block.args, strict=True)
        for old, new in arguments:
            new.name_hint = old.name_hint
        values = [self._leaf(_splits_first(leaf)) for leaf in self.graph.leaves]
        expressions = self.exporter.expressions.of_values(self.graph)
        for number, node in enumerate(self.graph.nodes, start=len(values)):
            value = self._node(node, [values[v] for v in node.operands])
            value.name_hint = self.exporter.hints.get(expressions[number])
            values.append(value)
        returned = [
            self._of_shape(values[output], type_.dims)
            for output, type_ in zip(
                self.graph.outputs, self.exporter.original.output_types, strict=True
            )
        ]
        self.block.add_op(ReturnOp(returned))
        return self.block

    def _shape(self, shape: Shape) -> tuple[Dim, ...]:
        """A shape in the original's names."""
        return tuple(1 if dim == 1 else self.names[dim] for dim in shape)

    def _add(self, op: Operator) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _leaf(self, leaf: Leaf) -> SSAValue:
        if leaf not in self._viewed:
            if leaf.views:
                *before, (step, shape) = leaf.views
                seen = Leaf(leaf.source, leaf.source_shape, leaf.element, tuple(before))
                value = self._view(step, self._leaf(seen), shape)
            else:
                value = self._source(leaf)
            hint = self.exporter.hints.get(self.exporter.expressions.of_leaf(leaf))
            value.name_hint = hint or value.name_hint
            self._viewed[leaf] = value
        return self._viewed[leaf]

    def _source(self, leaf: Leaf) -> SSAValue:
        match leaf.source:
            case Input(position=position):
                return self.block.args[position]
            case Number(value=value):
                type_ = TensorType([], f32)
                return self._add(Constant(result_type=type_, value=value))
            case Generated(step=step, shape=shape):
                type_ = TensorType(self._shape(shape), leaf.element)
                return self._add(step.operator(result_type=type_, **dict(step.params)))

    def _view(self, step: Step, value: SSAValue, shape: Shape) -> SSAValue:
        params = step.operator.retyped(dict(step.params), self._shape(shape))
        return self._add(step.operator(value, **params))

    def _node(self, node: Node, operands: list[SSAValue]) -> SSAValue:
        if node.step.operator.IS_VIEW:
            value = self._of_shape(operands[0], self._shape(node.shapes[0]))
            return self._view(node.step, value, node.shape)
        operator, params = node.step.operator, dict(node.step.params)
        if params or not self._fits(operator, operands, node):
            operands = [
                self._of_shape(operand, self._shape(shape))
                for operand, shape in zip(operands, node.shapes, strict=True)
            ]
        return self._add(operator(*operands, **params))

    def _fits(
        self, operator: type[Operator], operands: list[SSAValue], node: Node
    ) -> bool:
        """Whether the operator means the same on operands with the dims they have."""
        try:
            dims = operator.infer_shape([_dims(operand) for operand in operands], {})
        except VerifyException:
            return False
        return _without_leading_ones(dims) == _without_leading_ones(
            self._shape(node.shape)
        )

    def _of_shape(self, value: SSAValue, shape: tuple[Dim, ...]) -> SSAValue:
        if _dims(value) == shape:
            return value
        if (known := self._reshaped.get((value, shape))) is None:
            known = self._add(Reshape(value, shape=shape))
            self._reshaped[value, shape] = known
        return known


def _splits_first(leaf: Leaf) -> Leaf:
    """
    The same leaf with splits in front of transpositions, so that these end at the
    operator and may become its parameters.
    """
    steps = [step for step, _ in leaf.views]
    swapped = True
    while swapped:
        swapped = False
        for position, (first, second) in enumerate(pairwise(steps)):
            if (first.operator, second.operator) == (Transpose, Split):
                permutation = dict(first.params)["permutation"]
                split = dict(second.params)
                split["dim"] = permutation[split["dim"]]
                axes = (0, *(axis + 1 for axis in permutation))
                steps[position : position + 2] = [
                    Step.of(Split, split),
                    Step.of(Transpose, {"permutation": axes}),
                ]
                swapped = True
                break
    result = Leaf(leaf.source, leaf.source_shape, leaf.element)
    for step in steps:
        result = result.seen_through(step)
    return result


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return cast(TensorType, value.type).dims


def _without_leading_ones(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    leading = next((i for i, dim in enumerate(shape) if dim != 1), len(shape))
    return shape[leading:]
