"""
Cutting a graph at chosen values into graphs that run one after another.

Each step of a cut has values that are kept in memory for the steps behind it. A piece
is what its values are computed from, back to inputs and to what earlier pieces keep.
Generators and views of inputs cost nothing, so each piece has its own; so has it of
anything else that is not kept, such as the exponentials in front of which softmax is
cut at its sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Block, BlockArgument, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from cleave.dialects.algebra.elementwise import Cast
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType
from cleave.passes.insert_casts import operand_element
from cleave.passes.partitioning.piece import KERNEL, Earlier, Input, Operand, Piece


def cut(
    graph: GraphOp,
    steps: Sequence[Sequence[SSAValue]],
    of: str,
    names: Sequence[str] = (),
    whole: Mapping[str, Attribute] | None = None,
) -> list[GraphOp]:
    """
    The pieces of `graph`, which is left as it is.

    Args:
        steps: for each piece but the last, the values of the graph that it computes and
            keeps, outputs that it computes among them. What no later piece uses is not
            passed on, and a piece of which nothing is needed is left out.
        of: what the pieces are pieces of, the name of the plan composed of them.
        names: what is appended to that to name the pieces; their numbers otherwise.
        whole: attributes that the composed plan is to have.

    What is passed on is f32, or of the input type where it is used as an operand of
    matmuls only, which would round it to that type anyway. Operands that a matmul of
    the whole rounds are rounded in the pieces as well, if need be by casts.

    Raises PassFailedException where the type of a matmul's operands cannot be told.
    """
    kept = [[v for v in map(stored, step) if isinstance(v, OpResult)] for step in steps]
    drafts = _drafts(graph, [*kept, ()])
    elements = _elements(graph, drafts)
    symbols = tuple(graph.symbol_names)
    places: dict[SSAValue, Operand] = {
        argument: Input(argument.index) for argument in graph.inputs
    }
    pieces: list[GraphOp] = []
    for number, draft in enumerate(drafts):
        suffix = names[number] if len(names) == len(drafts) else str(number)
        operands = [value for value in places if value in draft.operands]
        results = draft.results(elements)
        piece = Piece(
            of,
            number,
            len(drafts),
            symbols,
            tuple(places[value] for value in operands),
            tuple(result.output for result in results),
            whole or {},
        )
        pieces.append(
            _graph(f"{of}_{suffix}", graph, draft, operands, results, elements, piece)
        )
        for position, result in enumerate(results):
            if result.value in draft.passed_on:
                places.setdefault(result.value, Earlier(number, position))
    return pieces


def stored(value: SSAValue) -> SSAValue:
    """What a value is in memory: views that keep the order of elements are free."""
    owner = value.owner
    while isinstance(owner, Operator) and owner.KEEPS_ORDER:
        value = owner.operands[0]
        owner = value.owner
    return value


@dataclass(frozen=True)
class _Result:
    """A value that a piece returns, and which output of the whole it is, if any."""

    value: SSAValue
    type: TensorType
    output: int | None = None


@dataclass
class _Draft:
    """A piece as values and operators of the whole graph."""

    passed_on: list[SSAValue]
    outputs: dict[int, SSAValue]
    output_types: Sequence[TensorType]
    operators: list[Operator] = field(default_factory=list[Operator])
    operands: set[SSAValue] = field(default_factory=set[SSAValue])
    """Inputs and what earlier pieces pass on, as far as they are used."""

    def results(self, elements: Mapping[SSAValue, Attribute]) -> list[_Result]:
        """What it passes on, then outputs; one result where an output is passed on."""
        found: list[_Result] = []
        for value in self.passed_on:
            type_ = cast(TensorType, value.type).with_element(elements[value])
            found.append(_Result(value, type_))
        for position, value in self.outputs.items():
            result = _Result(value, self.output_types[position], position)
            passed_on = _Result(value, result.type)
            if passed_on in found:
                found[found.index(passed_on)] = result
            else:
                found.append(result)
        return found


def _drafts(graph: GraphOp, kept: Sequence[Sequence[SSAValue]]) -> list[_Draft]:
    """The pieces of which something is needed, in order."""
    step_of: dict[SSAValue, int] = {}
    for step, values in enumerate(kept):
        for value in values:
            step_of.setdefault(value, step)
    last = len(kept) - 1
    outputs: list[dict[int, SSAValue]] = [{} for _ in kept]
    for position, value in enumerate(graph.return_op.values):
        outputs[step_of.get(stored(value), last)][position] = value
    drafts: list[_Draft] = []
    needed: set[SSAValue] = set()
    for step in range(last, -1, -1):
        passed_on = [v for v, first in step_of.items() if first == step and v in needed]
        draft = _Draft(passed_on, outputs[step], graph.output_types)
        if passed_on or outputs[step]:
            earlier = {value for value, other in step_of.items() if other < step}
            _slice(graph, draft, earlier)
            needed |= draft.operands
            drafts.insert(0, draft)
    unused = {argument for argument in graph.inputs if not any(argument.uses)}
    drafts[-1].operands |= unused
    return drafts


def _slice(graph: GraphOp, draft: _Draft, earlier: set[SSAValue]) -> None:
    """Find the operators of a piece, in the graph's order, and its operands."""
    needed = {*draft.passed_on, *draft.outputs.values()}
    for op in reversed(list(graph.operators)):
        (result,) = op.results
        if result in needed and result not in earlier:
            draft.operators.insert(0, op)
            needed.update(op.operands)
    draft.operands = {
        value
        for value in needed
        if isinstance(value, BlockArgument) or value in earlier
    }


def _elements(graph: GraphOp, drafts: Sequence[_Draft]) -> dict[SSAValue, Attribute]:
    """The element type of every value that is passed on."""
    found: dict[SSAValue, Attribute] = {}
    for draft in drafts:
        for value in draft.passed_on:
            element = cast(TensorType, value.type).element_type
            uses = {
                use
                for later in drafts
                if value in later.operands
                for use in _rounded_uses(value, graph, later)
            }
            narrow = uses.pop() if len(uses) == 1 else None
            found[value] = narrow if element == f32 and narrow else element
    return found


def _rounded_uses(
    value: SSAValue, graph: GraphOp, draft: _Draft
) -> set[Attribute | None]:
    """The types to which the uses of a value in a piece round it; None for others."""
    found: set[Attribute | None] = set()
    if value in draft.outputs.values():
        found.add(None)
    for op in draft.operators:
        if value not in op.operands:
            continue
        if op.IS_VIEW:
            found |= _rounded_uses(op.results[0], graph, draft)
        elif op.ON_TENSOR_CORES:
            found.add(operand_element(op, graph))
        else:
            found.add(None)
    return found


def _graph(
    name: str,
    graph: GraphOp,
    draft: _Draft,
    operands: Sequence[SSAValue],
    results: Sequence[_Result],
    elements: Mapping[SSAValue, Attribute],
    piece: Piece,
) -> GraphOp:
    """A piece as a graph of its own."""
    types = [
        cast(TensorType, value.type).with_element(
            elements.get(value, cast(TensorType, value.type).element_type)
        )
        for value in operands
    ]
    block = Block(arg_types=types)
    values: dict[SSAValue, SSAValue] = {}
    for value, argument in zip(operands, block.args, strict=True):
        argument.name_hint = value.name_hint
        values[value] = argument
    copies: list[tuple[Operator, Operator]] = []
    for op in draft.operators:
        copy = _copied(op, values)
        block.add_op(copy)
        values[op.results[0]] = copy.results[0]
        copies.append((op, copy))
    block.add_op(ReturnOp([values[result.value] for result in results]))
    made = GraphOp(
        name,
        graph.symbol_names,
        graph.facts,
        [result.type for result in results],
        block,
        {KERNEL: piece.attribute},
    )
    for op, copy in copies:
        if op.ON_TENSOR_CORES:
            _round_as_in_whole(op, graph, copy, made)
    return made


def _copied(op: Operator, values: Mapping[SSAValue, SSAValue]) -> Operator:
    if op.IS_VIEW:
        # Its elements may be narrower here than in the whole.
        copy = type(op)(*(values[operand] for operand in op.operands), **op.params)
    else:
        copy = op.clone(dict(values))
    copy.results[0].name_hint = op.results[0].name_hint
    return copy


def _round_as_in_whole(
    op: Operator, graph: GraphOp, copy: Operator, piece: GraphOp
) -> None:
    """Cast operands of a matmul where its piece does not show to what type."""
    element = operand_element(op, graph)
    if element is None or element == operand_element(copy, piece):
        return
    for position, operand in enumerate(copy.operands):
        type_ = cast(TensorType, operand.type)
        if is_float(type_.element_type) and type_.element_type != element:
            rounding = Cast(operand, element_type=element)
            rounding.out.name_hint = operand.name_hint
            Rewriter.insert_op(rounding, InsertPoint.before(copy))
            copy.operands[position] = rounding.out
