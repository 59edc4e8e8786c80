"""Building a graph's operators, each expression once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from math import log
from typing import Any, cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Block, SSAValue

from cleave.dialects.algebra.elementwise import Add, Div, Exp, Exp2, Mul, Sub
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.algebra.views import Reshape, Transpose
from cleave.dialects.tensor import TensorType
from cleave.passes.exponents.factors import LN2, Extent, Factor, Placed, Powers
from cleave.passes.exponents.forms import Form, Term
from cleave.passes.exponents.propagation import dims_of

Tensor = Callable[[Hashable], SSAValue]
"""What stands for a tensor of a form in the graph that is built."""


class GraphBuilder:
    """Appends operators to a block, unless it holds the same one already."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._made: dict[Hashable, SSAValue] = {}

    def add(
        self,
        operator: type[Operator],
        *operands: SSAValue,
        name: str | None = None,
        attributes: dict[str, Attribute] | None = None,
        **params: Any,
    ) -> SSAValue:
        if operands:
            params.pop("result_type", None)  # it follows from theirs
        key = (operator, operands, tuple(sorted(params.items())))
        if key not in self._made:
            op = operator(*operands, **params)
            op.attributes.update(attributes or {})
            op.results[0].name_hint = name
            self.block.add_op(op)
            self._made[key] = op.results[0]
        return self._made[key]

    def number(self, value: Any) -> SSAValue:
        return self.add(Constant, value=value, result_type=TensorType([], f32))

    # Forms

    def form(self, form: Form, tensor: Tensor) -> SSAValue:
        """The value of a form that is not 0, positive terms first."""
        positive = [(t, c) for t, c in form if c > 0]
        negative = [(t, -c) for t, c in form if c < 0]
        if not positive:
            return self.add(Mul, self.form(-form, tensor), self.number(-1.0))
        value = self._sum(positive, tensor)
        return self.add(Sub, value, self._sum(negative, tensor)) if negative else value

    def plus(
        self, value: SSAValue, form: Form, tensor: Tensor, name: str | None = None
    ) -> SSAValue:
        """A value with a form added to it."""
        terms = sorted(form, key=lambda item: item[1] < 0)
        for number, (term, c) in enumerate(terms, start=1):
            part = self.form(Form({term: abs(c)}), tensor)
            hint = name if number == len(terms) else None
            part = self.trimmed(part, len(dims_of(value)))
            value = self.add(Add if c > 0 else Sub, value, part, name=hint)
        return value

    def trimmed(self, value: SSAValue, rank: int) -> SSAValue:
        """A value of this rank, if dims of size 1 in front are all that it exceeds."""
        shape = dims_of(value)
        excess = len(shape) - rank
        if excess <= 0 or any(dim != 1 for dim in shape[:excess]):
            return value
        return self.add(Reshape, value, shape=shape[excess:])

    def exp(self, form: Form, tensor: Tensor, name: str | None = None) -> SSAValue:
        """The exponential of a form."""
        unit = unit_of(form)
        exponent = self.form(form.times(unit.inverse()), tensor)
        return self.exp_of(exponent, unit, name)

    def exp_of(
        self, exponent: SSAValue, unit: Factor, name: str | None = None
    ) -> SSAValue:
        """`exp`, or `exp2` of an exponent in units of ln 2."""
        operator = Exp2 if unit.powers.items else Exp
        return self.add(operator, exponent, name=name)

    def _sum(self, terms: list[tuple[Term, Any]], tensor: Tensor) -> SSAValue:
        total: SSAValue | None = None
        for term, coefficient in terms:
            value = self._term(term, float(coefficient), tensor)
            total = value if total is None else self.add(Add, total, value)
        return cast(SSAValue, total)

    def _term(self, term: Term, coefficient: float, tensor: Tensor) -> SSAValue:
        value = self._placed(term.shift, tensor)
        if coefficient != 1:
            value = self.add(Mul, value, self.number(coefficient))
        for base, power in sorted(term.powers.items, key=lambda item: str(item[0])):
            factor = self._factor(base, tensor)
            for _ in range(abs(power)):
                value = self.add(Mul if power > 0 else Div, value, factor)
        return value

    def _factor(self, base: Placed, tensor: Tensor) -> SSAValue:
        if base == LN2:
            return self.number(log(2))
        if isinstance(base.tensor, Extent):
            return self.number(base.tensor.dim)
        return self._placed(base, tensor)

    def _placed(self, placed: Placed, tensor: Tensor) -> SSAValue:
        """A tensor with its dims where they are in the value it is to stand beside."""
        value = tensor(placed.tensor)
        shape = dims_of(value)
        rank = len(shape)
        if placed.is_aligned(rank):
            return value
        moved = [
            (position, axis)
            for position, axis in enumerate(placed.places)
            if axis is not None
        ]
        order = [axis for _, axis in reversed(moved)]
        others = [axis for axis in range(rank) if axis not in order]
        value = self.add(Transpose, value, permutation=(*others, *order))
        wanted: list[Any] = [1] * len(placed.places)
        for position, axis in moved:
            wanted[-1 - position] = shape[axis]
        return self.add(Reshape, value, shape=tuple(wanted))


def unit_of(form: Form) -> Factor:
    """ln 2 if every term has just that factor, else 1."""
    ln2 = Powers.of({LN2: 1})
    is_binary = all(dict(term.powers.items).get(LN2) == 1 for term in form.terms)
    return Factor(Fraction(1), ln2 if form and is_binary else Powers())
