"""`infer-reduced-dims`: find the dims of each input that a graph reduces."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType
from cleave.passes.dim_groups import regroupings

REDUCED_DIMS = "reduced_dims"
"""The attribute of a graph that holds them: for each input, an array of dims."""

InputDim: TypeAlias = tuple[int, int]
"""An input and one of its dims, by number."""

_ALL = -1
"""In place of an axis: an element depends on every index of the input dim."""


@dataclass(frozen=True)
class InferReducedDimsPass(ModulePass):
    """
    Annotate each graph with the dims of its inputs that are eventually reduced: some
    element of an output depends on every index of the dim (paper section 4, where the
    user annotates them). Only these may be split and reduced.

    An annotation that is already there is checked, not believed.

    Before:
        algebra.graph @scores [M, N, K]
            (%a: !algebra.tensor<[M, K], f16>, %b: !algebra.tensor<[K, N], f16>)
            -> (!algebra.tensor<[M, N], f32>) {
          %c = algebra.matmul %a, %b : !algebra.tensor<[M, N], f32>
          algebra.return %c
        }
    After:
        algebra.graph @scores [M, N, K]
            (%a: !algebra.tensor<[M, K], f16>, %b: !algebra.tensor<[K, N], f16>)
            -> (!algebra.tensor<[M, N], f32>)
            attributes {reduced_dims = [array<i64: 1>, array<i64: 0>]} {
          ...
    """

    name = "infer-reduced-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                reduced = reduced_dims(graph)
                self._check_annotation(graph, reduced)
                graph.attributes[REDUCED_DIMS] = ArrayAttr(
                    DenseArrayBase.from_list(i64, dims) for dims in reduced
                )

    def _check_annotation(self, graph: GraphOp, reduced: list[list[int]]) -> None:
        if (annotation := graph.attributes.get(REDUCED_DIMS)) is None:
            return
        where = f"graph @{graph.graph_name}"
        well_formed = isa(annotation, ArrayAttr[DenseArrayBase[IntegerType]])
        if not well_formed or len(annotation) != len(reduced):
            raise PassFailedException(
                f"{where}: {REDUCED_DIMS} must be an array with an array<i64: ...> for "
                f"each input, {len(reduced)} in all"
            )
        for position, (given, dims) in enumerate(zip(annotation, reduced, strict=True)):
            said = set(given.get_values())
            for dim in sorted(said ^ set(dims)):
                verb = "is not reduced" if dim in said else "is reduced"
                input_ = graph.inputs[position].name_hint or position
                claim = "is" if dim in said else "is not"
                raise PassFailedException(
                    f"{where}: dim {dim} of input {input_} {verb}, but the annotation "
                    f"says that it {claim}"
                )


def reduced_dims(graph: GraphOp) -> list[list[int]]:
    """For each input the dims that some output element depends on every index of."""
    dependences: dict[SSAValue, _Dependence] = {}
    for position, value in enumerate(graph.inputs):
        rank = cast(TensorType, value.type).rank
        dependences[value] = {(position, axis): {axis} for axis in range(rank)}
    for op in graph.operators:
        dependences[op.results[0]] = _through(op, dependences)
    reduced: set[InputDim] = set()
    for value in graph.return_op.values:
        reduced |= {dim for dim, axes in dependences[value].items() if _ALL in axes}
    return [
        [axis for axis in range(type_.rank) if (position, axis) in reduced]
        for position, type_ in enumerate(graph.input_types)
    ]


_Dependence: TypeAlias = dict[InputDim, set[int]]
"""
How an element of a value depends on input dims: on the index at its own position along
some axis, or on all.
"""


def _through(op: Operator, dependences: dict[SSAValue, _Dependence]) -> _Dependence:
    """The dependence of an operator's result, from those of its operands."""
    result: _Dependence = defaultdict(set)
    for number, operand in enumerate(op.operands):
        targets = _targets(op, number)
        for dim, axes in dependences[operand].items():
            for axis in axes:
                result[dim] |= {_ALL} if axis == _ALL else targets[axis]
    return result


def _targets(op: Operator, number: int) -> list[set[int]]:
    """
    For each axis of an operand where it is found in the result; `_ALL` if reduced.
    """
    shape = cast(TensorType, op.operands[number].type).dims
    targets: list[set[int]] = [set() for _ in shape]
    if op.KEEPS_ORDER:
        for before, after in regroupings(shape, op.result_type.dims):
            for axis in before:
                targets[axis] = set(after)
        return targets
    expression = op.expression
    for axis, index in enumerate(expression.operands[number]):
        for term in index:
            reduced = term.axis >= expression.rank
            targets[axis].add(_ALL if reduced else term.axis)
    return targets
