"""`insert-casts`: make every rounding of a graph visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.elementwise import Cast
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType


@dataclass(frozen=True)
class InsertCastsPass(ModulePass):
    """
    Round computed matmul operands to the type of the graph's inputs and results to the
    types that the graph declares for them. Everything else stays in f32.

    Before:
        %p = algebra.exp %s : !algebra.tensor<[M, L], f32>
        %o = algebra.matmul %p, %v : !algebra.tensor<[M, D], f32>
        algebra.return %o
    After:
        %p = algebra.exp %s : !algebra.tensor<[M, L], f32>
        %1 = algebra.cast %p to f16 : !algebra.tensor<[M, L], f16>
        %o = algebra.matmul %1, %v : !algebra.tensor<[M, D], f32>
        %2 = algebra.cast %o to f16 : !algebra.tensor<[M, D], f16>
        algebra.return %2
    """

    name = "insert-casts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        graphs = [graph for graph in op.ops if isinstance(graph, GraphOp)]
        # Every graph is done before one is replaced: a failure changes nothing.
        new = [graph.clone() for graph in graphs]
        for graph in new:
            insert_casts(graph)
        for before, after in zip(graphs, new, strict=True):
            Rewriter.replace_op(before, after)


def insert_casts(graph: GraphOp) -> None:
    """
    Do it for one graph, in place; see `InsertCastsPass`.

    Raises PassFailedException where inputs of several narrow types do not decide the
    type of a matmul.
    """
    roundings = _Roundings()
    for op in list(graph.operators):
        if op.ON_TENSOR_CORES:
            _cast_operands(op, graph, roundings)
    return_op = graph.return_op
    for position, type_ in enumerate(graph.output_types):
        value = return_op.values[position]
        return_op.operands[position] = roundings.of_result(value, type_.element_type)
    for op in reversed(list(graph.operators)):
        # The views of results that were rounded anew in front of them.
        if op.KEEPS_ORDER and not any(op.results[0].uses):
            Rewriter.erase_op(op)


@dataclass
class _Roundings:
    """The casts inserted so far, so that no value is rounded twice to one type."""

    casts: dict[tuple[SSAValue, Attribute], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Attribute], SSAValue]
    )

    def of(self, value: SSAValue, element: Attribute) -> SSAValue:
        if cast(TensorType, value.type).element_type == element:
            return value
        if (value, element) not in self.casts:
            rounding = Cast(value, element_type=element)
            owner = value.owner
            if isinstance(owner, Operator):
                Rewriter.insert_op(rounding, InsertPoint.after(owner))
            else:
                block = cast(Block, owner)
                Rewriter.insert_op(rounding, InsertPoint.at_start(block))
            rounding.out.name_hint = value.name_hint
            self.casts[value, element] = rounding.out
        return self.casts[value, element]

    def of_result(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The same for a result: rounded in the kernel, so before its views."""
        owner = value.owner
        if not isinstance(owner, Operator) or not owner.KEEPS_ORDER:
            return self.of(value, element)
        source = self.of_result(owner.operands[0], element)
        if source is owner.operands[0]:
            return value
        view = type(owner)(source, **owner.params)
        view.results[0].name_hint = value.name_hint
        Rewriter.insert_op(view, InsertPoint.after(owner))
        return view.results[0]


def _cast_operands(op: Operator, graph: GraphOp, roundings: _Roundings) -> None:
    element = operand_element(op, graph)
    if element is None:
        return
    for position, operand in enumerate(op.operands):
        op.operands[position] = roundings.of(operand, element)


def operand_element(op: Operator, graph: GraphOp) -> Attribute | None:
    """
    The type to which the operands of a matmul of `graph` are rounded, the narrowest of
    theirs; None where the matmul says its own precision.

    Raises PassFailedException where only the inputs could tell, and they differ.
    """
    if "precision" in op.params:
        return None
    elements = [type_.element_type for type_ in op.operand_types]
    narrowest = min(elements, key=element_bytes)
    if narrowest == f32 and all(_is_computed(operand) for operand in op.operands):
        return _input_element(op, graph)
    return narrowest


def _is_computed(value: SSAValue) -> bool:
    """Whether a value is none of the inputs, nor a view of one."""
    owner = value.owner
    if not isinstance(owner, Operator):
        return False
    return not owner.IS_VIEW or _is_computed(owner.operands[0])


def _input_element(op: Operator, graph: GraphOp) -> Attribute:
    """The narrow type of the graph's inputs, which decides where no operand does."""
    inputs = [type_.element_type for type_ in graph.input_types]
    narrow = dict.fromkeys(e for e in inputs if is_float(e) and element_bytes(e) <= 2)
    if len(narrow) > 1:
        names = " and ".join(str(element) for element in narrow)
        raise PassFailedException(
            f"'{op.name}' op: both operands are computed and the inputs of "
            f"@{graph.graph_name} are {names}; cast the operands to one of them"
        )
    return next(iter(narrow), f32)
