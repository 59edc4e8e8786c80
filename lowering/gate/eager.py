"""
What a graph gives when it is run operator by operator in low precision, as in eager
mode of PyTorch. Its error is the yardstick of the numerical gate.

Each operator computes in float32 and rounds its result to the type of its operands: the
one they share, or float32 where they differ. Two kinds of values are *weak*, as
Python's numbers are: constants, and what is computed from positions and masks alone.
They are not rounded and take the type of what they meet. An `algebra.cast` of a float
is obeyed. Results are rounded to the types that the graph declares.

The definition is a graph: the user's, with a cast behind each operator. So each of the
executors of graphs runs it ("rounded").
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Block, SSAValue

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.elementwise import Cast
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator, is_float


def eager_graph(graph: GraphOp, low: Attribute | None = None) -> GraphOp:
    """
    The same graph with the roundings of eager mode.

    Args:
        low: a float type that stands in for each narrow type (16 bits) that results are
            rounded to; the inputs are the same numbers as before.
    """
    return _EagerGraph(graph, low).build()


class _EagerGraph:
    def __init__(self, graph: GraphOp, low: Attribute | None) -> None:
        self.graph = graph
        self.low = low
        self.block = Block(arg_types=graph.input_types)
        self.values: dict[SSAValue, SSAValue] = {}
        self.elements: dict[SSAValue, Attribute | None] = {}
        """What each value is rounded to; None for a weak one."""

    def build(self) -> GraphOp:
        graph = self.graph
        for argument, new, type_ in zip(
            graph.inputs, self.block.args, graph.input_types, strict=True
        ):
            new.name_hint = argument.name_hint
            self.values[argument] = new
            element = type_.element_type
            self.elements[argument] = element if is_float(element) else None
        for op in graph.operators:
            self._add(op)
        returned = [self.values[value] for value in graph.return_op.values]
        self.block.add_op(ReturnOp(returned))
        return GraphOp(
            graph.graph_name,
            graph.symbol_names,
            graph.facts,
            graph.output_types,
            self.block,
        )

    def _add(self, op: Operator) -> None:
        (result,) = op.results
        operands = [self.values[operand] for operand in op.operands]
        type_ = op.result_type if not operands else None
        new = type(op)(*operands, result_type=type_, **op.params)
        self.block.add_op(new)
        new.results[0].name_hint = result.name_hint
        element = self._element(op)
        self.elements[result] = element
        self.values[result] = new.results[0]
        if element is not None and self._rounds(op, new, element):
            self.values[result] = self._rounded(new.results[0], element)

    def _rounded(self, value: SSAValue, element: Attribute) -> SSAValue:
        # A stand-in is left again, since it would not meet the type of an input.
        targets = [element] if self.low is None else [self.low, f32]
        for target in targets:
            rounding = Cast(value, element_type=target)
            self.block.add_op(rounding)
            rounding.out.name_hint = value.name_hint
            value = rounding.out
        return value

    def _element(self, op: Operator) -> Attribute | None:
        met = [self.elements[operand] for operand in op.operands]
        strong = list(dict.fromkeys(element for element in met if element is not None))
        if not strong or not is_float(op.result_type.element_type):
            return None
        if op.ONLY_ROUNDS:
            return op.result_type.element_type
        return promoted(strong)

    def _rounds(self, op: Operator, new: Operator, element: Attribute) -> bool:
        # A reference of rounded values is one of them, or the least there is, which a
        # narrow type cannot represent.
        if op.IS_REFERENCE or op.IS_VIEW or element_bytes(element) > 2:
            return False
        return self.low is not None or new.result_type.element_type != element


def promoted(elements: Sequence[Attribute]) -> Attribute:
    """The type that an operator on these float types rounds its result to."""
    if len(elements) == 1:
        return elements[0]
    return f64 if f64 in elements else f32
