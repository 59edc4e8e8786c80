"""Operands of matmuls that would be rounded although nobody has said so: refused."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType
from cleave.passes.insert_casts import operand_element

SIDES = ("lhs", "rhs")
"""The operands of a matmul."""


def require_stated_roundings(graph: GraphOp) -> None:
    """
    Raise PassFailedException for a matmul of which an operand that is an f32 input, or
    is computed from f32 inputs alone, would be rounded although no cast says so; and
    for one of types that only casts to f32 bring together.

    What is computed from narrow inputs is in f32 of Cleave's own accord, and is rounded
    to their type (`insert-casts`), also where an f32 scale or bias has entered it.
    """
    sources = _sources(graph)
    for op in graph.operators:
        if not op.ON_TENSOR_CORES:
            continue
        held = [_held(operand) for operand in op.operands]
        narrow = list(dict.fromkeys(e for e in held if element_bytes(e) <= 2))
        if len(narrow) > 1:
            raise PassFailedException(
                f"'{op.name}' op: lhs is {held[0]} but rhs is {held[1]}, before casts"
            )
        if "precision" in op.params:
            if narrow:
                raise PassFailedException(
                    f"'{op.name}' op: precision {op.params['precision']} is of f32 "
                    f"operands, but {SIDES[held.index(narrow[0])]} is {narrow[0]}"
                )
            continue
        element = narrow[0] if narrow else operand_element(op, graph)
        if element is None or element_bytes(element) > 2:
            continue
        for position, operand in enumerate(op.operands):
            if held[position] != element and sources[operand] == {f32}:
                raise PassFailedException(_unstated(op, position, element))


def _unstated(op: Operator, position: int, element: Attribute) -> str:
    operand, other = (op.operands[each] for each in (position, 1 - position))
    side, other_side = SIDES[position], SIDES[1 - position]
    is_input = not isinstance(_unviewed(operand)[-1].owner, Operator)
    origin = "" if is_input else ", of f32 inputs alone"
    name = f"%{operand.name_hint or position}"
    other_name = f" %{other.name_hint}" if other.name_hint else ""
    return (
        f"'{op.name}' op: {side} {name} is {operand.type}{origin}, but {other_side}"
        f"{other_name} is multiplied as {element}, and nothing says that {side} may "
        "be rounded: say which with `algebra.cast`, as in "
        f"`algebra.cast {name} to {element}`"
    )


def _held(value: SSAValue) -> Attribute:
    """The narrowest float type of a value, of what it views, or casts."""
    elements = [_element(each) for each in _unviewed(value)]
    return min(filter(is_float, elements), key=element_bytes)


def _unviewed(value: SSAValue) -> list[SSAValue]:
    """A value and what it is a view or a cast of, step by step."""
    chain = [value]
    while isinstance(op := value.owner, Operator) and (op.IS_VIEW or op.ONLY_ROUNDS):
        value = op.operands[0]
        chain.append(value)
    return chain


def _sources(graph: GraphOp) -> dict[SSAValue, set[Attribute]]:
    """By value, the float types of the inputs, or narrow casts, that it is made of."""
    sources: dict[SSAValue, set[Attribute]] = {}
    for value in graph.inputs:
        sources[value] = {e for e in (_element(value),) if is_float(e)}
    for op in graph.operators:
        element = op.result_type.element_type
        if op.ONLY_ROUNDS and element_bytes(element) <= 2:
            sources[op.results[0]] = {element}
        else:
            found = (sources[operand] for operand in op.operands)
            sources[op.results[0]] = set[Attribute]().union(*found)
    return sources


def _element(value: SSAValue) -> Attribute:
    return cast(TensorType, value.type).element_type
