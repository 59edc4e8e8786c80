"""
Which exponentials of a graph may be shifted, over which dims, and why others may not.

Each exponential gets an unknown: what its exponent is shifted by. What has to be equal
or 0 for the outputs to stay the same (up to offsets, which can be subtracted again) is
a system of linear equations in them; a solution is a *family* of exponentials that are
shifted together (DESIGN section 7; superoptimizer.md 3.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.degree import Degree, Moves, Obstacle, Sort, Unlike, Varies
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.equations import SolutionSpace
from cleave.passes.exponents.factors import Factor, Placed, Powers, without_places
from cleave.passes.exponents.forms import ZERO, Form, Term
from cleave.passes.exponents.maxima import Decomposition
from cleave.passes.exponents.propagation import (
    Propagation,
    dims_of,
    places_of,
    unit_of_exponent,
)
from cleave.passes.exponents.wording import Wording


@dataclass
class Exponential:
    """An exponential of a graph, and whether its exponent may be shifted."""

    op: Operator
    unit: Factor
    """The logarithm of its base."""
    unknown: int
    reduced: set[int] = field(default_factory=set[int])
    """
    The dims of the exponent that its terms are summed over: a shift is constant there.
    """
    masks: list[SSAValue] = field(default_factory=list[SSAValue])
    """Masks that hide terms wherever they are summed."""
    reason: str | None = None
    """Why it is not shifted; None if it is."""

    @property
    def exponent(self) -> SSAValue:
        return self.op.operands[0]

    @property
    def result(self) -> SSAValue:
        return self.op.results[0]

    @property
    def varying(self) -> list[int]:
        """The dims of the exponent that are not of size 1."""
        return [axis for axis, dim in enumerate(dims_of(self.exponent)) if dim != 1]

    @property
    def kept(self) -> list[int]:
        """Those of them along which a shift may vary."""
        return [axis for axis in self.varying if axis not in self.reduced]


class _Unknowns(Degrees):
    """Degrees that go on behind an obstacle, and remember it."""

    def __init__(self) -> None:
        self.met: list[Obstacle] = []

    def meet(self, obstacle: Obstacle) -> None:
        self.met.append(obstacle)


class Exponents:
    """
    The exponentials of a graph and the degrees of its values.

    A degree is a form in the exponentials' results: `%p` stands for what the result of
    that exponential is multiplied by.
    """

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.wording = Wording(graph.body.block)
        self.exponentials: dict[SSAValue, Exponential] = {}
        self.degrees: dict[SSAValue, Degree] = {}
        self._equations: list[tuple[Form, str]] = []
        self._reductions: list[Varies] = []
        self._propagate()
        self._space = SolutionSpace(len(self.exponentials))
        self._solve()
        self._find_reduced()
        self._leave_shifted()

    # Results

    @property
    def shifted(self) -> list[Exponential]:
        return [e for e in self.exponentials.values() if e.reason is None]

    def of(self, form: Form) -> Form:
        """
        A form in terms of what may be chosen freely: the families, by number. It is
        empty if nothing changes whatever is chosen.
        """
        total = ZERO
        for term, coefficient in form:
            powers = without_places(term.powers)
            exponential = self.exponentials[cast(SSAValue, term.shift.tensor)]
            for family, vector in enumerate(self._space.basis):
                if amount := vector[exponential.unknown]:
                    unit = Factor(coefficient * amount, powers)
                    total += Form.of(family).times(unit)
        return total

    def scale(self, value: SSAValue) -> Form:
        """How a value is scaled, by families."""
        return self.of(self.degrees[value].scale)

    def offset(self, value: SSAValue) -> Form:
        """What is added to a value, by families."""
        return self.of(self.degrees[value].offset)

    def named(self, form: Form) -> Form:
        """A form in families, each called by its first exponential."""
        first = {
            family: exponential.result
            for exponential in reversed(self.exponentials.values())
            for family, vector in enumerate(self._space.basis)
            if vector[exponential.unknown]
        }
        return Form(
            {
                Term(Placed(first[cast(int, term.shift.tensor)]), term.powers): c
                for term, c in form
            }
        )

    # The equations

    def _propagate(self) -> None:
        domain = _Unknowns()
        propagation = Propagation(domain)
        for value in self.graph.inputs:
            self.degrees[value] = propagation.leaf(value)
        for op in self.graph.operators:
            operands = [self.degrees[operand] for operand in op.operands]
            degree = self._result(propagation, op, operands)
            unit = unit_of_exponent(op)
            if unit is not None:
                degree = self._add_unknown(op, unit, degree)
            self.degrees[op.results[0]] = degree
            for obstacle in domain.met:
                self._note(op, obstacle)
            domain.met.clear()
        for number, value in enumerate(self.graph.return_op.values):
            scale = self.degrees[value].scale
            text = self.wording.form(scale)
            rule = f"'algebra.return' op: result {number} would be scaled by {text}"
            self._equations.append((scale, rule))

    def _result(
        self, propagation: Propagation, op: Operator, operands: Sequence[Degree]
    ) -> Degree:
        try:
            return propagation.result(op, operands)
        except NotImplementedError:
            # Without a meaning in this domain there is no law to use.
            for operand in operands:
                if operand.scale:
                    self._note(op, Moves(Sort.SCALE, operand))
            return Degree(op.result_type.dims)

    def _add_unknown(self, op: Operator, unit: Factor, degree: Degree) -> Degree:
        result = op.results[0]
        unknown = len(self.exponentials)
        self.exponentials[result] = Exponential(op, unit, unknown)
        own = Form.of(result, places_of(dims_of(result)))
        return Degree(degree.shape, degree.scale + own, may_vanish=degree.may_vanish)

    def _note(self, op: Operator, obstacle: Obstacle) -> None:
        rule = self.wording.rule(op, obstacle)
        match obstacle:
            case Unlike(sort=Sort.SCALE, left=left, right=right):
                self._equations.append((left.scale - right.scale, rule))
            case Moves(sort=Sort.SCALE, value=value):
                self._equations.append((value.scale, rule))
            case Varies(sort=Sort.SCALE, reduced=False, value=value):
                self._equations.append((value.scale, rule))
            case Varies(sort=Sort.SCALE):
                self._reductions.append(obstacle)
            case _:
                # Offsets: what was added can be subtracted anywhere.
                pass

    def _solve(self) -> None:
        for form, rule in self._equations:
            for equation in self._by_powers(form).values():
                self._space.require(equation)
            for exponential in self.exponentials.values():
                if exponential.reason is None and self._space.is_zero(
                    exponential.unknown
                ):
                    exponential.reason = rule
        for exponential in self.exponentials.values():
            if exponential.reason is None and not self.scale(exponential.result):
                exponential.reason = "its exponent moves along with the others"

    def _by_powers(self, form: Form) -> dict[Powers, dict[int, Fraction]]:
        equations: dict[Powers, dict[int, Fraction]] = {}
        for term, coefficient in form:
            powers = without_places(term.powers)
            equation = equations.setdefault(powers, {})
            unknown = self.exponentials[cast(SSAValue, term.shift.tensor)].unknown
            equation[unknown] = equation.get(unknown, Fraction(0)) + coefficient
        return equations

    # Which exponents need a shift, and where it is constant

    def _find_reduced(self) -> None:
        """
        The dims over which terms of an exponential are summed before anything else is.

        Later reductions find sums with a reference each, which may be rescaled.
        """
        for reduction in self._reductions:
            value = reduction.value
            if not self.of(value.scale):
                continue
            for term, _ in value.scale:
                exponential = self.exponentials[cast(SSAValue, term.shift.tensor)]
                axis = term.shift.place(reduction.position)
                is_whole = term.shift.axes == set(exponential.varying)
                if is_whole and axis is not None:
                    masks = self._masks_of(exponential, value, term.shift)
                    if exponential.reduced:
                        masks = [mask for mask in masks if mask in exponential.masks]
                    exponential.masks = masks
                    exponential.reduced.add(axis)

    def _masks_of(
        self, exponential: Exponential, value: Degree, seen: Placed
    ) -> list[SSAValue]:
        """The masks that hide a value and fit the exponent that is seen in it."""
        masks = [m for m in value.masks if _stands_beside(m, exponential, seen)]
        found = {mask.tensor for mask in masks}
        return [mask for mask in self.degrees if mask in found]

    def _leave_shifted(self) -> None:
        """Leave families alone in which an exponent is already shifted."""
        decomposition = Decomposition(self.graph.operators)
        related = {
            exponential.unknown
            for exponential in self.shifted
            if decomposition.is_shifted_by_maximum(
                exponential.exponent,
                [
                    axis
                    for axis in exponential.varying
                    if axis not in exponential.reduced
                ],
            )
        }
        while True:
            touched = [v for v in self._space.basis if any(v[i] for i in related)]
            more = {i for v in touched for i, x in enumerate(v) if x} - related
            if not more:
                break
            related |= more
        for exponential in self.shifted:
            if exponential.unknown in related:
                exponential.reason = "shifted by a maximum already"


def _stands_beside(mask: Placed, exponential: Exponential, seen: Placed) -> bool:
    """Whether a mask that hides what is seen of an exponential fits its exponent."""
    shape = dims_of(cast(SSAValue, mask.tensor))
    rank = len(dims_of(exponential.exponent))
    return mask.axes == {i for i, dim in enumerate(shape) if dim != 1} and all(
        (place := seen.place(position)) is not None
        and len(shape) - axis == rank - place
        for position, axis in enumerate(mask.places)
        if axis is not None
    )
