"""
Masks: minus infinity under an exponential, and what it comes to above it.

`exp(select(mask, s, -inf))` is `select(mask, exp(s), 0)`, and the latter is a product
with the mask, about which the search knows everything that it knows about products. So
selections of an infinity are moved behind the operators that follow them before the
search, and back in front afterwards, where a shift of the exponent looks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isinf, isnan

import numpy as np
from xdsl.dialects.builtin import f32

from cleave.passes.superoptimize.builder import GraphBuilder
from cleave.passes.superoptimize.graph import Leaf, Node, Number, SearchGraph, Step

_PROBES = (-2.0, 0.0, 3.5)
"""Numbers that stand for any: adding them to an infinity changes nothing."""


@dataclass(frozen=True)
class Moved:
    """
    A step that a selection was moved behind: `step(select(mask, x, before))`, where the
    selection is the operand at `position`, became `select(mask, step(x), after)`.
    """

    step: Step
    position: int
    before: float
    after: float


def move_behind(graph: SearchGraph) -> tuple[SearchGraph, list[Moved]]:
    """Move selections of infinities behind elementwise operators, as far as they go."""
    builder = GraphBuilder()
    moves = _Moves(builder)
    refs = [builder.leaf(leaf) for leaf in graph.leaves]
    for node in graph.nodes:
        refs.append(
            moves.add(replace(node, operands=tuple(refs[v] for v in node.operands)))
        )
    return builder.finish([refs[output] for output in graph.outputs]), moves.moved


@dataclass
class _Moves:
    builder: GraphBuilder
    selections: dict[int, Node] = field(default_factory=dict[int, Node])
    """Those of infinities, by their values."""
    moved: list[Moved] = field(default_factory=list[Moved])

    def add(self, node: Node) -> int:
        """The value of a node, in which selections stand as far behind as they go."""
        places = [at for at, v in enumerate(node.operands) if v in self.selections]
        if len(places) == 1 and node.step.operator.ELEMENTWISE:
            ref = self._behind(node, places[0])
            if ref is not None:
                return ref
        ref = self.builder.node(node.step, node.operands, node.shapes)
        other = _unselected(self.builder, node)
        if other is not None and isinf(other):
            self.selections[ref] = node
        return ref

    def _behind(self, node: Node, place: int) -> int | None:
        """The selection behind a node on it; None where infinity does not decide."""
        builder = self.builder
        selection = self.selections[node.operands[place]]
        mask, selected, _ = selection.operands
        before = _unselected(builder, selection)
        assert before is not None
        after = _result_for(builder, node, place, before)
        if after is None:
            return None
        operands, shapes = list(node.operands), list(node.shapes)
        operands[place], shapes[place] = selected, builder.shape(selected)
        # What is selected may be a selection itself, of another mask.
        inside = self.add(Node(node.step, tuple(operands), tuple(shapes)))
        behind = Node(
            selection.step,
            (mask, inside, builder.leaf(Leaf(Number(after), (), f32))),
            (selection.shapes[0], builder.shape(inside), ()),
        )
        ref = builder.node(behind.step, behind.operands, behind.shapes)
        if isinf(after):
            self.selections[ref] = behind
        else:
            self.moved.append(Moved(node.step, place, before, after))
        return ref


def move_in_front(graph: SearchGraph, moved: Sequence[Moved]) -> SearchGraph:
    """Undo what `move_behind` did wherever an operator is used by a selection only."""
    steps = {(move.step, move.after): move for move in moved}
    uses = Counter(v for node in graph.nodes for v in node.operands)
    uses.update(graph.outputs)
    builder = GraphBuilder()
    refs = [builder.leaf(leaf) for leaf in graph.leaves]
    for original in graph.nodes:
        node = replace(original, operands=tuple(refs[v] for v in original.operands))
        after = _unselected(builder, node)
        move = None
        if after is not None and uses[original.operands[1]] == 1:
            selected = node.operands[1]
            if selected >= 0:
                move = steps.get((builder.nodes[selected].step, after))
        if move is None:
            refs.append(builder.node(node.step, node.operands, node.shapes))
        else:
            refs.append(_in_front(builder, node, move))
    return builder.finish([refs[output] for output in graph.outputs])


def _in_front(builder: GraphBuilder, selection: Node, move: Moved) -> int:
    mask, inside, _ = selection.operands
    node = builder.nodes[inside]
    selected = builder.node(
        selection.step,
        (
            mask,
            node.operands[move.position],
            builder.leaf(Leaf(Number(move.before), (), f32)),
        ),
        (selection.shapes[0], node.shapes[move.position], ()),
    )
    operands, shapes = list(node.operands), list(node.shapes)
    operands[move.position] = selected
    shapes[move.position] = builder.shape(selected)
    return builder.node(node.step, operands, shapes)


def _unselected(builder: GraphBuilder, node: Node) -> float | None:
    """
    The number that stands where the mask does not hold, if the node is a selection.
    """
    if len(node.operands) != 3 or not node.step.operator.ELEMENTWISE:
        return None
    mask, _, other = (builder.leaf_of(ref) for ref in node.operands)
    if mask is None or not mask.is_mask or other is None:
        return None
    match other.source:
        case Number(value=float(value)):
            return value
        case _:
            return None


def _result_for(
    builder: GraphBuilder, node: Node, place: int, infinity: float
) -> float | None:
    """
    What a node gives if one operand is infinite, unless that depends on the others.
    """
    results: set[float] = set()
    for probe in _PROBES:
        arguments = [np.array(_value(builder, ref, probe)) for ref in node.operands]
        arguments[place] = np.array(infinity)
        with np.errstate(all="ignore"):
            step = node.step
            result = step.operator.numpy(np, arguments, dict(step.params), ())
        results.add(float(result))
    (result, *others) = results
    return None if others or isnan(result) else result


def _value(builder: GraphBuilder, ref: int, otherwise: float) -> float:
    leaf = builder.leaf_of(ref)
    match leaf.source if leaf is not None else None:
        case Number(value=float(value)):
            return value
        case Number():
            return 1.0  # the extent of a dim is positive, and that is all that matters
        case _:
            return otherwise
