"""
Planning: which moves on which kinds of values are worth evaluating.

Whether operands fit, what type and class the result has, and whether that may become
part of the target depends on the operands' types and classes only. So it is decided
once for each combination of those, and not for each combination of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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
        self._parts = dict(dims.parts)
        self._parts.update((split.count, split.part) for split in dims.splits)
        self._results: dict[tuple[Move, tuple[TypeId, ...]], list[_Result]] = {}
        self._plans: dict[tuple[Move, tuple[Kind, ...]], list[Plan]] = {}
        self._pair_moves: dict[tuple[Class, Class], tuple[Move, ...]] = {}
        self._fitting: dict[tuple[Move | _Form, Class, Class], bool] = {}
        forms = _Forms()
        self._forms = {move: forms.of(move) for move in self.binary}

    def moves(self, a: Class, b: Class) -> tuple[Move, ...]:
        """
        The moves on two values of these classes whose class fits before the reduced
        dims are counted in, which only makes it larger.
        """
        if (known := self._pair_moves.get((a, b))) is None:
            factors, terms = self._contexts.places(a)
            other_factors, other_terms = self._contexts.places(b)
            common = {"product": factors & other_factors, "sum": terms & other_terms}
            known = self._pair_moves[a, b] = tuple(
                move
                for move in self.binary
                if common.get((form := self._forms[move]).kind, True)
                and self._may_fit(move, form, a, b)
            )
            self.counts.pruned_by_class += len(self.binary) - len(known)
        return known

    def _may_fit(self, move: Move, form: _Form, a: Class, b: Class) -> bool:
        """Whether the class of a move fits, reduced dims left out; once a form."""
        if form.symmetric and b < a:
            a, b = b, a
        key = (form if form.kind else move, a, b)
        if (known := self._fitting.get(key)) is None:
            classes = self._classes(move, (a, b))
            shapes = (_UNIT,) * len(classes)
            known = self._fitting[key] = any(
                self._contexts.live_dims(
                    step.interpret(self._abstraction, classes, shapes)
                )
                for step in form.steps
            )
        return known

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


_UNIT: Shape = (1, 1)
"""Dims of size 1 are no factors."""


@dataclass(frozen=True)
class _Form:
    """What a move makes of the classes of its operands, reduced dims left out."""

    kind: Literal["product", "sum", ""]
    cls: tuple[Class, ...]
    """The classes that it gives for two inputs; moves with the same give the same."""
    symmetric: bool
    steps: tuple[Step, ...] = field(compare=False)


class _Forms:
    """Forms of moves, found by applying them to two inputs of their own."""

    def __init__(self) -> None:
        self.abstraction = Abstraction(lambda dim: (dim,), distribute=True)
        self.inputs = [self.abstraction.leaf("input", number) for number in range(2)]

    def of(self, move: Move) -> _Form:
        shapes = (_UNIT,) * (move.open + len(move.fixed))
        steps = tuple(Step.of(move.operator, params) for params in move.params(shapes))
        if move.fixed:
            return _Form("", (), symmetric=False, steps=steps)
        abstraction, (a, b) = self.abstraction, self.inputs
        forwards = tuple(s.interpret(abstraction, [a, b], shapes) for s in steps)
        backwards = tuple(s.interpret(abstraction, [b, a], shapes) for s in steps)
        return _Form(self._kind(forwards), forwards, forwards == backwards, steps)

    def _kind(self, classes: tuple[Class, ...]) -> Literal["product", "sum", ""]:
        polynomials = [self.abstraction.polynomials[cls] for cls in classes]
        factors = {f for p in polynomials for n, d in p for f in n + d}
        kinds = {self.abstraction.factors[factor][0] for factor in factors}
        if not kinds <= {"input", "number"}:
            return ""
        return "product" if all(len(p) == 1 for p in polynomials) else "sum"
