"""Every operator says what it means in the domains of the search."""

from collections.abc import Hashable
from typing import Any

import pytest

from cleave.dialects.algebra import OPERATORS
from cleave.dialects.algebra.elementwise import Max, Min, Relu
from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.abstract import Abstraction
from cleave.passes.superoptimize.field import Field
from cleave.passes.superoptimize.semantics import Domain
from cleave.passes.superoptimize.signs import Sign, Signed, Signs

EXTENTS: dict[Hashable, int] = {1: 1, "m": 2, "k": 2}
PARAMS: dict[str, dict[str, Any]] = {
    "algebra.reduce_sum": {"dim": 1},
    "algebra.reduce_max": {"dim": 1},
    "algebra.reference": {"dim": 1},
    "algebra.transpose": {"permutation": (1, 0)},
    "algebra.reshape": {"shape": ("m", 1, "k")},
}
APPLIED = [op for op in OPERATORS if getattr(op, "ARITY", 0) and "split" not in op.name]


def interpret(operator: type[Operator], domain: Domain[Any], value: Any) -> Any:
    square = ("m", "m")
    params = PARAMS.get(operator.name, {})
    values, shapes = [value] * operator.ARITY, [square] * operator.ARITY
    return operator.interpret(domain, values, shapes, params)


@pytest.mark.parametrize("operator", APPLIED, ids=lambda op: op.name)
def test_operators_mean_something_in_every_domain(operator: type[Operator]):
    field = Field(1, EXTENTS.__getitem__)
    value = field.random(("m", "m"))
    elements = 2 if "dim" in PARAMS.get(operator.name, {}) else 4
    assert interpret(operator, field, value).p[0].size == elements
    abstraction = Abstraction(lambda dim: (dim,), distribute=True)
    cls = interpret(operator, abstraction, abstraction.leaf("input", 0))
    assert 0 <= cls < len(abstraction.polynomials)
    positive = Signed(Sign.POSITIVE)
    assert isinstance(interpret(operator, Signs(assuming=False), positive), Signed)


def test_minima_and_relu_are_maxima():
    field = Field(1, EXTENTS.__getitem__)
    a, b = field.random(("m",)), field.random(("m",))
    shapes = [("m",), ("m",)]
    maximum = Max.interpret(field, [a, b], shapes, {})
    negated = [field.neg(a), field.neg(b)]
    minimum = field.neg(Min.interpret(field, negated, shapes, {}))
    assert (maximum.p == minimum.p).all()
    relu = Relu.interpret(field, [a], shapes[:1], {})
    assert (relu.p == field.maximum(a, field.number(0.0)).p).all()
