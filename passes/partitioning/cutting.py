"""Cutting a graph at chosen values into graphs that run one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from cleave.dialects.algebra.elementwise import Cast
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType
from cleave.passes.insert_casts import operand_element
from cleave.passes.partitioning.draft import (
    Draft,
    Result,
    Steps,
    drafts_of,
    elements_of,
)
from cleave.passes.partitioning.piece import KERNEL, Earlier, Input, Operand, Piece
from cleave.passes.scheduling.tiles import fresh_name


def cut(
    graph: GraphOp,
    steps: Steps,
    of: str,
    names: Sequence[str] = (),
    whole: Mapping[str, Attribute] | None = None,
    taken: set[str] | None = None,
) -> list[GraphOp]:
    """
    The pieces of `graph`, which is left as it is.

    Args:
        steps: for each piece but the last, the values of the graph that it keeps for
            later pieces, outputs that it computes among them; see `drafts_of`.
        of: what the pieces are pieces of, the name of the plan composed of them.
        names: what is appended to that to name the pieces if there are so many; their
            numbers otherwise.
        whole: attributes that the composed plan is to have.
        taken: names that no piece is to have; those of the pieces are added.

    What is passed on is f32, or of the input type where it is used as an operand of
    matmuls only, which would round it to that type anyway. Operands that a matmul of
    the whole rounds are rounded in the pieces as well, if need be by casts.

    Raises PassFailedException where the type of a matmul's operands cannot be told.
    """
    taken = set() if taken is None else taken
    drafts = drafts_of(graph, steps)
    elements = elements_of(drafts)
    places: dict[SSAValue, Operand] = {
        argument: Input(argument.index) for argument in graph.inputs
    }
    pieces: list[GraphOp] = []
    for number, draft in enumerate(drafts):
        operands = [value for value in places if value in draft.operands]
        results = draft.results(elements)
        piece = Piece(
            of,
            number,
            len(drafts),
            tuple(graph.symbol_names),
            tuple(places[value] for value in operands),
            tuple(result.output for result in results),
            whole or {},
        )
        suffix = names[number] if len(names) == len(drafts) else str(number)
        name = fresh_name(f"{of}_{suffix}", taken)
        taken.add(name)
        made = _graph(name, draft, operands, results, elements)
        made.attributes[KERNEL] = piece.attribute
        pieces.append(made)
        for position, result in enumerate(results):
            if result.value in draft.passed_on:
                places.setdefault(result.value, Earlier(number, position))
    return pieces


def _graph(
    name: str,
    draft: Draft,
    operands: Sequence[SSAValue],
    results: Sequence[Result],
    elements: Mapping[SSAValue, Attribute],
) -> GraphOp:
    """A piece as a graph of its own."""
    types = [cast(TensorType, value.type) for value in operands]
    block = Block(
        arg_types=[
            type_.with_element(elements.get(value, type_.element_type))
            for value, type_ in zip(operands, types, strict=True)
        ]
    )
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
        draft.graph.symbol_names,
        draft.graph.facts,
        [result.type for result in results],
        block,
    )
    for op, copy in copies:
        if op.ON_TENSOR_CORES:
            _round_as_in_whole(op, draft.graph, copy, made)
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
