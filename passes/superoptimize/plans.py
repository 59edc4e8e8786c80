"""
Planning: which moves on which kinds of values are worth evaluating.

Whether operands fit, what type and class the result has, and whether that may become
part of the target depends on the operands' types and classes only. So it is decided
once for each combination of those, and not for each combination of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.utils.exceptions import VerifyException

from cleave.passes.superoptimize.abstract import Abstraction, Class
from cleave.passes.superoptimize.contexts import Contexts
from cleave.passes.superoptimize.graph import Dims, Step
from cleave.passes.superoptimize.moves import Move
from cleave.passes.superoptimize.semantics import Shape
from cleave.passes.superoptimize.space import Space, TypeId

Kind: TypeAlias = tuple[TypeId, Class]
"""The type and the class of a value."""


@dataclass
class Counts:
    """What happened to moves on operands of given kinds."""

    pruned_by_class: int = 0
    """The class of the result fits into no context."""
    pruned_by_dims: int = 0
    """A dim of the result could never be reduced."""


@dataclass(frozen=True)
class Plan:
    """A step on operands of certain kinds that is worth evaluating."""

    step: int
    result: Kind


@dataclass(frozen=True)
class _Result:
    """A step on operands of certain types, which fit, and the type of its result."""

    step: Step
    shapes: tuple[Shape, ...]
    type: TypeId


class Planner:
    """The plans for the moves of one closure."""

    def __init__(
        self,
        space: Space,
        abstraction: Abstraction,
        contexts: Contexts,
        dims: Dims,
        moves: Sequence[Move],
    ) -> None:
        self.unary = [move for move in moves if move.open == 1]
        self.binary = [move for move in moves if move.open == 2]
        self.counts = Counts()
        self._space = space
        self._abstraction = abstraction
        self._contexts = contexts
        self._parts = {split.count: split.part for split in dims.splits}
        self._results: dict[tuple[Move, tuple[TypeId, ...]], list[_Result]] = {}
        self._plans: dict[tuple[Move, tuple[Kind, ...]], list[Plan]] = {}
        self._pair_moves: dict[tuple[Class, Class], tuple[Move, ...]] = {}
        self._loosely: dict[Move, list[Step]] = {}
        """The steps of each move on operands whose dims are all 1."""

    def moves(self, a: Class, b: Class) -> tuple[Move, ...]:
        """
        The moves on two values of these classes whose class fits before the reduced
        dims are counted in, which only makes it larger.
        """
        if (known := self._pair_moves.get((a, b))) is None:
            known = self._pair_moves[a, b] = tuple(
                move for move in self.binary if self._may_fit(move, a, b)
            )
            self.counts.pruned_by_class += len(self.binary) - len(known)
        return known

    def _may_fit(self, move: Move, a: Class, b: Class) -> bool:
        classes = self._classes(move, (a, b))
        # Dims of size 1 are no factors.
        shapes = ((1, 1),) * len(classes)
        if move not in self._loosely:
            self._loosely[move] = [
                Step.of(move.operator, params) for params in move.params(shapes)
            ]
        return any(
            self._contexts.live_dims(step.interpret(self._abstraction, classes, shapes))
            for step in self._loosely[move]
        )

    def plans(self, move: Move, kinds: tuple[Kind, ...]) -> list[Plan]:
        """The steps of a move on operands of these kinds that are worth evaluating."""
        if (known := self._plans.get((move, kinds))) is None:
            known = self._plans[move, kinds] = []
            classes = self._classes(move, [cls for _, cls in kinds])
            for result in self._results_for(move, tuple(type_ for type_, _ in kinds)):
                cls = result.step.interpret(self._abstraction, classes, result.shapes)
                dims = self._abstraction.dim_mask(self._space.shapes[result.type])
                if not self._contexts.live_dims(cls):
                    self.counts.pruned_by_class += 1
                elif not self._contexts.admits(cls, dims):
                    self.counts.pruned_by_dims += 1
                else:
                    step = self._space.step_of(result.step)
                    known.append(Plan(step, (result.type, cls)))
        return known

    def _classes(self, move: Move, classes: Sequence[Class]) -> tuple[Class, ...]:
        return move.fill(classes, lambda fixed: fixed.cls)

    def _results_for(self, move: Move, types: tuple[TypeId, ...]) -> list[_Result]:
        """The steps of a move that operands of these types fit."""
        if (known := self._results.get((move, types))) is None:
            known = self._results[move, types] = []
            types = move.fill(types, lambda fixed: fixed.type)
            shapes = tuple(self._space.shapes[type_] for type_ in types)
            if move.of_shape is not None:
                if (self._space.aligned(move.of_shape),) != shapes:
                    return known
                shapes = (move.of_shape,)
                for params in move.params(shapes):
                    step = self._space.step_of(Step.of(move.operator, params))
                    self._space.seen_as[step, types] = shapes
            elements = [self._space.elements[type_] for type_ in types]
            for params in move.params(shapes):
                try:
                    shape = move.operator.infer_shape(shapes, params)
                    element = move.operator.infer_element_type(elements, params)
                except VerifyException:
                    continue
                step = Step.of(move.operator, params)
                if self._reduces_sensibly(step, shapes):
                    type_ = self._space.type_of(shape, element)
                    known.append(_Result(step, shapes, type_))
        return known

    def _reduces_sensibly(self, step: Step, shapes: Sequence[Shape]) -> bool:
        """
        Whether what is reduced has more than one element, and the parts of a split dim
        are not added up before the dim of each part is reduced.
        """
        dims = [dim for shape in shapes for dim in shape]
        return all(
            dim != 1 and not (dim in self._parts and self._parts[dim] in dims)
            for dim in step.reduced(shapes)
        )
