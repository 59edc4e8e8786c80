"""
Rebuilding a graph with shifted exponents.

Every value v of the graph is held as another one, v', from which it differs by a known
degree: `v = v' * exp(w)` or `v = v' + a`, where w and a are forms in the references by
which exponents were shifted. An exponential `exp(s)` becomes `exp(s - r)` with w = r;
what follows is computed on v' alone for as long as the rules of degrees allow it:

* values of different w are added: each is multiplied by `exp(w - R)`, where R is the
  larger one (an attention sink);
* a reduction runs over a dim along which w varies: the same, with the reference of w
  over that dim as R (the parts of a split: FlashDecoding's combine);
* what is added to a value matters, or the value is a result: it is added again;
* a value that was scaled matters: w is a difference of references, `exp(w)` is at most
  about 1, and the value is multiplied by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import cast

import numpy as np
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.contraction import Reference
from cleave.dialects.algebra.elementwise import Select, Sub
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import ReturnOp
from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.analysis import Exponential, Exponents
from cleave.passes.exponents.builder import GraphBuilder
from cleave.passes.exponents.degree import Degree, Moves, Obstacle, Sort, Unlike, Varies
from cleave.passes.exponents.degrees import Degrees
from cleave.passes.exponents.factors import ONE, Placed
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.exponents.held import Held, HeldValues
from cleave.passes.exponents.propagation import (
    Propagation,
    dims_of,
    places_of,
    response,
)

_ATTEMPTS = 16
"""More obstacles than an operator can meet: each removes a degree of an operand."""


class _Divisions(Degrees):
    """Degrees, with the operands that were divided by and may be 0."""

    def __init__(self) -> None:
        self.divisors: set[int] = set()

    def divides(self, divisor: Degree) -> None:
        if divisor.scale and divisor.may_vanish and divisor.operand is not None:
            self.divisors.add(divisor.operand)


class ShiftedGraph:
    """The body of a graph with its exponents shifted as an analysis says."""

    def __init__(self, exponents: Exponents) -> None:
        self.exponents = exponents
        graph = exponents.graph
        self.block = Block(arg_types=graph.input_types)
        self.builder = GraphBuilder(self.block)
        self.domain = _Divisions()
        self.propagation = Propagation(self.domain)
        self.values = HeldValues(self.builder)
        self.held = self.values.held
        for old, new in zip(graph.inputs, self.block.args, strict=True):
            new.name_hint = old.name_hint
            self.held[old] = Held(new, self.propagation.leaf(old))
        for op in graph.operators:
            self._hold(op.results[0])
        returned = [self.values.plain(self.held[v]) for v in graph.return_op.values]
        self.block.add_op(ReturnOp(returned))
        _erase_unused(self.block)

    # Operators

    def _hold(self, value: SSAValue) -> Held:
        if value not in self.held:
            # A mask may be computed behind the exponential that it hides.
            op = cast(Operator, value.owner)
            for operand in op.operands:
                self._hold(operand)
            self.held[value] = self._rebuilt(op)
        return self.held[value]

    def _rebuilt(self, op: Operator) -> Held:
        operands = [self.held[operand] for operand in op.operands]
        exponential = self.exponents.exponentials.get(op.results[0])
        if exponential is not None and exponential.reason is None:
            return self._shifted(exponential, operands[0])
        operands, degree = self._without_obstacles(op, operands)
        if degree.scale and not self.values.family(degree.scale):
            operands, degree = self._without_obstacles(op, self._aligned(operands))
        if degree.is_unchanged and degree.operand is not None:
            return operands[degree.operand]
        if degree.offset and not degree.scale:
            operands, degree = self._with_offset_inside(op, operands, degree)
        if self._is_one(op, operands):
            return Held(self._one(op), degree)
        for position in self.domain.divisors:
            operands[position] = self.values.kept_from_zero(operands[position])
        value = self.builder.add(
            type(op),
            *(operand.value for operand in operands),
            name=op.results[0].name_hint,
            attributes={} if degree.moves else op.attributes,
            result_type=op.result_type,
            **op.params,
        )
        return Held(value, degree)

    def _is_one(self, op: Operator, operands: Sequence[Held]) -> bool:
        if not op.ELEMENTWISE or not op.operands:
            return False
        if any(operand.value not in self.values.ones for operand in operands):
            return False
        ones = [np.ones(()) for _ in operands]
        return float(op.numpy(np, ones, op.params, ())) == 1

    def _one(self, op: Operator) -> SSAValue:
        """1 in the place of a result, of which nothing is left but the scale."""
        value = self.builder.add(Constant, value=1.0, result_type=op.result_type)
        self.values.ones.add(value)
        return value

    def _aligned(self, operands: list[Held]) -> list[Held]:
        """
        For a result that is not scaled: operands that are nothing but a scale get the
        one of another operand. `exp(a)` becomes `exp(a - r)` over a sum scaled by r.
        """
        aligned = list(operands)
        for position, operand in enumerate(operands):
            family = self.values.family(operand.degree.scale)
            if operand.value not in self.values.ones or not family:
                continue
            for other in operands:
                scale = other.degree.scale
                if (
                    other.value not in self.values.ones
                    and self.values.family(scale) == family
                ):
                    aligned[position] = self.values.rescaled(operand, scale)
        return aligned

    def _without_obstacles(
        self, op: Operator, operands: list[Held]
    ) -> tuple[list[Held], Degree]:
        """The operands brought to degrees with which the operator has a law."""
        for _ in range(_ATTEMPTS):
            self.domain.divisors.clear()
            try:
                degrees = [operand.degree for operand in operands]
                return operands, self.propagation.result(op, degrees)
            except NotImplementedError:
                plain = [self.values.with_plain_value(operand) for operand in operands]
                return plain, Degree(op.result_type.dims)
            except Obstacle as obstacle:
                operands = self._overcome(op, operands, obstacle)
        raise AssertionError(f"'{op.name}' op: obstacles do not end")

    def _shifted(self, exponential: Exponential, operand: Held) -> Held:
        """`exp(s - r)`, or 1 where r is s itself because nothing is summed up."""
        op, unit = exponential.op, exponential.unit
        exponent = self.values.plain(operand)
        result = exponential.result
        vanishes = operand.degree.may_vanish or bool(exponential.masks)
        for mask in exponential.masks:
            holds, hidden = self._hold(mask).value, self.builder.number(-inf)
            exponent = self.builder.add(Select, holds, exponent, hidden, name="seen")
        shape = dims_of(exponent)
        shift = exponent
        for axis in sorted(exponential.reduced, reverse=True):
            shift = self.builder.add(Reference, shift, name="r", dim=axis)
            self.values.finite.add(shift)
        if exponential.reduced:
            moved = self.builder.add(Sub, exponent, shift, name="shifted")
            value = self.builder.add(type(op), moved, name=result.name_hint)
        else:
            value = self._one(op)
        family = self.exponents.scale(result)
        self.values.families[shift] = family.times(unit.inverse())
        scale = Form.of(shift, places_of(dims_of(shift))).times(unit)
        masks = frozenset(
            Placed(mask, places_of(dims_of(mask))) for mask in exponential.masks
        )
        return Held(value, Degree(shape, scale, may_vanish=vanishes, masks=masks))

    def _with_offset_inside(
        self, op: Operator, operands: list[Held], degree: Degree
    ) -> tuple[list[Held], Degree]:
        """
        Add what the result lacks to an operand that lacks nothing instead.

        That operand has the size of the reference, and the other ones do not: in
        `s - log(l)` it is `s - r` that loses no digits, not the difference plus r.
        """
        for position, operand in enumerate(operands):
            if operand.degree.moves or _is_number(operand.degree):
                continue
            factor = response(op, position)
            if factor is not None and factor.powers == ONE:
                form = degree.offset.times(factor.inverse())
                operands = list(operands)
                operands[position] = self.values.plus(operand, form)
                return operands, replace(degree, offset=ZERO)
        return operands, degree

    # Obstacles

    def _overcome(
        self, op: Operator, operands: Sequence[Held], obstacle: Obstacle
    ) -> list[Held]:
        changed = list(operands)
        places: list[int] = []
        for value in obstacle.values:
            if value.operand is not None:
                places.append(value.operand)
            elif value.moves:
                rule = self.exponents.wording.rule(op, obstacle)
                raise PassFailedException(f"cannot shift exponents: {rule}")
        match obstacle:
            case Unlike(sort=Sort.SCALE):
                scales = [changed[i].degree.scale for i in places]
                if all(self.values.family(scale) for scale in scales):
                    joined = self.values.joined([changed[i] for i in places])
                    for i, held in zip(places, joined, strict=True):
                        changed[i] = held
                else:
                    for i in places:
                        changed[i] = self.values.with_plain_value(changed[i])
            case Varies(sort=Sort.SCALE, reduced=True, position=position) if (
                self.values.family(changed[places[0]].degree.scale)
            ):
                held = changed[places[0]]
                changed[places[0]] = self.values.with_reference_over(held, position)
            case Unlike() | Moves() | Varies():
                for i in places:
                    changed[i] = self.values.with_plain_value(changed[i])
            case _:
                raise obstacle
        return changed


def _is_number(degree: Degree) -> bool:
    return degree.number is not None


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, Operator) and not any(op.results[0].uses):
            block.erase_op(op)
