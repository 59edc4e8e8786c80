"""
Pieces of a graph as values and operators of it, before they are built.

A cut is a list of steps, each with the values that are kept in memory for the steps
behind it. A piece is what its values are computed from, back to inputs and to what
earlier pieces keep. Generators and views of inputs cost nothing, so each piece has its
own; so has it of anything else that is not kept, such as the exponentials of a softmax
that is cut at its sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, BlockArgument, SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType
from cleave.passes.insert_casts import operand_element

Steps: TypeAlias = Sequence[Sequence[SSAValue]]


@dataclass(frozen=True)
class Result:
    """A value that a piece returns, and which output of the whole it is, if any."""

    value: SSAValue
    type: TensorType
    output: int | None = None


@dataclass
class Draft:
    """A piece of a graph."""

    graph: GraphOp
    passed_on: list[SSAValue]
    """What later pieces use of it."""
    outputs: dict[int, SSAValue]
    """The outputs of the whole that it computes, by position."""
    operators: list[Operator] = field(default_factory=list[Operator])
    """In the order of the graph."""
    operands: set[SSAValue] = field(default_factory=set[SSAValue])
    """Inputs and what earlier pieces pass on, as far as they are used."""

    @property
    def values(self) -> frozenset[SSAValue]:
        """What it computes for others."""
        return frozenset([*self.passed_on, *self.outputs.values()])

    def results(self, elements: Mapping[SSAValue, Attribute]) -> list[Result]:
        """What it passes on, then outputs; one result where an output is passed on."""
        found: list[Result] = []
        for value in self.passed_on:
            type_ = cast(TensorType, value.type).with_element(elements[value])
            found.append(Result(value, type_))
        for position, value in self.outputs.items():
            type_ = self.graph.output_types[position]
            output = Result(value, type_, position)
            if (passed_on := Result(value, type_)) in found:
                found[found.index(passed_on)] = output
            else:
                found.append(output)
        return found


def drafts_of(graph: GraphOp, steps: Steps) -> list[Draft]:
    """
    The pieces of a cut, in order.

    Each step but the last, which is not among `steps`, lists the values that it keeps.
    An output that is kept leaves from the piece that keeps it, any other one from the
    last. Inputs, generators and views of them need not be kept, what no later piece
    uses is not passed on, and a piece of which nothing is needed is left out.
    """
    step_of: dict[SSAValue, int] = {}
    for step, values in enumerate(steps):
        for value in map(stored, values):
            if not is_leaf(value):
                step_of.setdefault(value, step)
    last = len(steps)
    outputs: list[dict[int, SSAValue]] = [{} for _ in range(last + 1)]
    for position, value in enumerate(graph.return_op.values):
        outputs[step_of.get(stored(value), last)][position] = value
    drafts: list[Draft] = []
    needed: set[SSAValue] = set()
    for step in range(last, -1, -1):
        kept = [v for v, first in step_of.items() if first == step and v in needed]
        draft = Draft(graph, kept, outputs[step])
        if kept or outputs[step]:
            earlier = {value for value, first in step_of.items() if first < step}
            draft.operators, draft.operands = computed_from(
                graph, [*kept, *outputs[step].values()], earlier
            )
            needed |= draft.operands
            drafts.insert(0, draft)
    drafts[-1].operands |= {a for a in graph.inputs if not any(a.uses)}
    return drafts


def stored(value: SSAValue) -> SSAValue:
    """What a value is in memory: views that keep the order of elements are free."""
    owner = value.owner
    while isinstance(owner, Operator) and owner.KEEPS_ORDER:
        value = owner.operands[0]
        owner = value.owner
    return value


def is_leaf(value: SSAValue) -> bool:
    """Whether a value is an input, a generator, or a view of one."""
    owner = value.owner
    if not isinstance(owner, Operator):
        return True
    return (owner.IS_VIEW or not owner.operands) and all(map(is_leaf, owner.operands))


def computed_from(
    graph: GraphOp, values: Iterable[SSAValue], known: set[SSAValue]
) -> tuple[list[Operator], set[SSAValue]]:
    """
    The operators that compute values of a graph from its inputs and `known` ones, in
    the order of the graph, and the inputs and known values that they use.
    """
    needed = set(values)
    operators: list[Operator] = []
    for op in reversed(list(graph.operators)):
        (result,) = op.results
        if result in needed and result not in known:
            operators.append(op)
            needed.update(op.operands)
    used = {v for v in needed if isinstance(v, BlockArgument) or v in known}
    return operators[::-1], used


def elements_of(drafts: Sequence[Draft]) -> dict[SSAValue, Attribute]:
    """
    The element type in which each value is passed on: its own, or the type to which
    matmuls round it, if nothing else uses it.
    """
    found: dict[SSAValue, Attribute] = {}
    for draft in drafts:
        for value in draft.passed_on:
            uses: set[Attribute | None] = set()
            for later in drafts:
                if value in later.operands:
                    uses |= _roundings(value, later)
            found[value] = _element(value, uses)
    return found


def element_in_memory(value: SSAValue, graph: GraphOp) -> Attribute:
    """The same for a value of which all uses are in later pieces."""
    everything = Draft(graph, [], {}, list(graph.operators))
    return _element(value, _roundings(value, everything))


def _element(value: SSAValue, roundings: set[Attribute | None]) -> Attribute:
    own = cast(TensorType, value.type).element_type
    (only,) = roundings if len(roundings) == 1 else (None,)
    return only if only is not None and own == f32 else own


def _roundings(value: SSAValue, draft: Draft) -> set[Attribute | None]:
    """The types to which the uses of a value in a piece round it; None for others."""
    found: set[Attribute | None] = set()
    if value in draft.outputs.values():
        found.add(None)
    for op in draft.operators:
        if value not in op.operands:
            continue
        if op.IS_VIEW:
            found |= _roundings(op.results[0], draft)
        elif op.ON_TENSOR_CORES:
            found.add(operand_element(op, draft.graph))
        else:
            found.add(None)
    return found
