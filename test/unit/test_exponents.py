"""
Degrees: what they are made of, that fingerprints agree with them, and what schedules
are told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from cleave.dialects.algebra import Algebra
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate, symbol
from cleave.passes.exponents.analysis import Exponents
from cleave.passes.exponents.equations import SolutionSpace
from cleave.passes.exponents.factors import (
    LN2,
    ONE,
    Factor,
    Powers,
    factor_of_number,
    factor_of_tensor,
)
from cleave.passes.exponents.forms import Form
from cleave.passes.exponents.propagation import (
    dims_of,
    places_of,
    unit_of_exponent,
)
from cleave.passes.exponents.references import Inhomogeneous, rescales
from cleave.passes.stabilize_exp import stabilize
from cleave.passes.superoptimize.field import Field, FieldValue
from cleave.passes.superoptimize.modular import Q

FOLDER = Path(__file__).parents[1] / "filecheck" / "passes" / "stabilize-exp"


def parsed(text: str) -> tuple[ModuleOp, GraphOp]:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Algebra)
    module = Parser(context, text).parse_module()
    module.verify()
    (graph,) = module.ops
    return module, cast(GraphOp, graph)


def graphs_in(*names: str) -> dict[str, str]:
    texts = [
        text
        for name in names
        for text in (FOLDER / f"{name}.mlir").read_text().split("// -----")
    ]
    found = [(re.search(r"algebra\.graph @(\w+)", text), text) for text in texts]
    return {name[1]: text for name, text in found if name is not None}


################################################################################
# Factors and equations                                                        #
################################################################################


@pytest.mark.parametrize(
    ("value", "rational", "power"),
    [
        (0.125, Fraction(1, 8), 0),
        (0.7, Fraction(7, 10), 0),
        (1 / 0.7, Fraction(10, 7), 0),
        (-3, Fraction(-3), 0),
        (log(2), Fraction(1), 1),
        (1.4426950408889634, Fraction(1), -1),
        (0.125 * 1.4426950408889634, Fraction(1, 8), -1),
    ],
)
def test_floats_are_what_was_meant(
    value: float, rational: Fraction, power: int
) -> None:
    assert factor_of_number(value) == Factor(rational, Powers.of({LN2: power}))


def test_other_floats_are_exact() -> None:
    value = 128**-0.5
    factor = factor_of_number(value)
    assert factor is not None
    assert float(factor.rational) == value
    assert factor * factor.inverse() == factor_of_number(1)


def test_dims_are_names() -> None:
    dim, other = symbol("D"), symbol("E")
    factor = factor_of_number(dim)
    assert factor is not None
    assert factor != factor_of_number(other)
    assert factor * factor.inverse() == factor_of_number(1)


@pytest.mark.parametrize("value", [0.0, 0, float("inf"), -float("inf")])
def test_no_factor(value: float) -> None:
    assert factor_of_number(value) is None


def test_solutions() -> None:
    space = SolutionSpace(4)
    space.require({0: Fraction(1), 1: Fraction(-1, 2)})
    space.require({3: Fraction(5)})
    space.require({0: Fraction(2), 1: Fraction(-1)})
    one, two, zero = Fraction(1), Fraction(2), Fraction(0)
    assert space.basis == [(one, two, zero, zero), (zero, zero, one, zero)]
    assert [space.is_zero(i) for i in range(4)] == [False, False, False, True]
    space.require({0: one, 2: one})
    assert space.basis == [(one, two, -one, zero)]


################################################################################
# Fingerprints                                                                 #
################################################################################

EXTENTS = {"H": 2, "G": 2, "M": 3, "L": 2, "N": 2, "D": 2, "s": 2, "V": 2}


class InField:
    """A graph in a finite field, some of whose exponents are shifted."""

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.generator = np.random.default_rng(7)
        self.field = Field(3, self._extent)
        self.leaves: dict[SSAValue, FieldValue] = {
            value: self.field.random(dims_of(value))
            for value in (
                *graph.inputs,
                *(op.results[0] for op in graph.operators if not op.operands),
            )
        }

    def _extent(self, dim: object) -> int:
        return evaluate(cast(int, dim), EXTENTS)

    def random(self, shape: Sequence[object]) -> FieldValue:
        """Something to shift exponents by."""
        extents = (len(self.field.trial), *map(self._extent, shape))
        q = self.generator.integers(1, Q, size=extents, dtype=np.int64)
        return FieldValue(q, q)

    def results(self, shifts: Mapping[SSAValue, FieldValue]) -> list[FieldValue]:
        values = dict(self.leaves)
        for op in self.graph.operators:
            result = op.results[0]
            if not op.operands:
                number = op.number(op.params)
                if number is not None:
                    values[result] = self.field.number(number)
                continue
            operands = [values[operand] for operand in op.operands]
            if result in shifts:
                unit = unit_of_exponent(op)
                assert unit is not None
                shift = shifts[result]
                if unit.powers.items:
                    shift = self.field.div(shift, self.field.number(log(2)))
                operands[0] = self.field.add(operands[0], shift)
            shapes = [type_.dims for type_ in op.operand_types]
            values[result] = op.interpret(self.field, operands, shapes, op.params)
        return [values[value] for value in self.graph.return_op.values]


def unchanged(field: InField, shifts: Mapping[SSAValue, FieldValue]) -> list[bool]:
    """Whether each result stays the same, except logarithms, which gain something."""
    exponents = Exponents(field.graph)
    return [
        np.array_equal(before.p, after.p)
        for before, after, value in zip(
            field.results({}),
            field.results(shifts),
            field.graph.return_op.values,
            strict=True,
        )
        if not exponents.offset(value)
    ]


# Those without infinities and logarithms, of which the field knows nothing.
IN_FIELD = [
    *("division_behind", "softmax_in_front", "transposed", "qk_norm", "bias"),
    *("alibi", "transposed_late", "softmax", "softmax_of_middle_dim"),
    *("softmax_of_two_dims", "two_attentions"),
    *("unit_length", "logistic", "mixture", "norms_of_two_orders", "flash_decoding"),
    *("normalized_in_front", "selected_behind"),
]
GRAPHS = graphs_in("attention", "masks", "sinks", "softmax", "together", "split")
KEPT = graphs_in("kept")
CAREFUL = {
    "nothing_to_shift",
    "shifted_by_a_maximum",
    "scaled_and_shifted",
    "regrouped",
}
"""Those in which nothing is refused, or only for want of a place for the reference."""


ROWS = [*IN_FIELD[:6], "softmax", "softmax_of_middle_dim", "unit_length"]
"""Those with one exponential, which is summed up at once."""


def families(exponents: Exponents) -> dict[object, dict[SSAValue, float]]:
    """What each exponential of a family is shifted by, with the others."""
    found: dict[object, dict[SSAValue, float]] = {}
    for exponential in exponents.shifted:
        for term, amount in exponents.scale(exponential.result):
            members = found.setdefault(term.shift.tensor, {})
            members[exponential.result] = float(amount)
    return found


@pytest.mark.parametrize("name", IN_FIELD)
def test_fingerprints_agree(name: str) -> None:
    """A shift of a family changes no result; another shift of one member does."""
    _module, graph = parsed(GRAPHS[name])
    exponents = Exponents(graph)
    field = InField(graph)
    assert families(exponents)
    for members in families(exponents).values():
        common = field.random(())
        free = {
            member: field.field.mul(common, field.field.number(amount))
            for member, amount in members.items()
        }
        assert all(unchanged(field, free))
        for member in members:
            exponent = exponents.exponentials[member].exponent
            wrong = {**free, member: field.random(dims_of(exponent))}
            assert not all(unchanged(field, wrong))


@pytest.mark.parametrize("name", ROWS)
def test_fingerprints_agree_for_every_row(name: str) -> None:
    """The shift may differ along all dims but those that the reference reduces."""
    _module, graph = parsed(GRAPHS[name])
    (exponential,) = Exponents(graph).shifted
    field = InField(graph)
    shape = dims_of(exponential.exponent)
    rows = [1 if axis in exponential.reduced else d for axis, d in enumerate(shape)]
    assert all(unchanged(field, {exponential.result: field.random(rows)}))


@pytest.mark.parametrize("name", sorted(KEPT.keys() - CAREFUL))
def test_refusals_are_needed(name: str) -> None:
    """What is not shifted would change a result, even if shifted by one number."""
    _module, graph = parsed(KEPT[name])
    exponents = Exponents(graph)
    refused = [e for e in exponents.exponentials.values() if e.reason is not None]
    field = InField(graph)
    assert refused
    for exponential in refused:
        assert not all(unchanged(field, {exponential.result: field.random(())}))


################################################################################
# What schedules are told                                                      #
################################################################################


def told(text: str, name: str) -> tuple[Form, Form]:
    """
    By what a value is rescaled when the first reference of a graph moves, and this
    reference.
    """
    module, graph = parsed(text)
    stabilize(graph)
    module.verify()
    ops = list(graph.operators)
    values = {op.results[0].name_hint: op for op in reversed(ops)}
    op, reference = values[name], values["r"].results[0]
    own = Form.of(reference, places_of(dims_of(reference)))
    return rescales([op], reference, ops)[op], own


@pytest.mark.parametrize(
    ("graph", "value", "degree", "binary"),
    [
        ("division_behind", "l", 1, False),
        ("division_behind", "a", 1, False),
        ("division_behind", "o", 0, False),
        ("softmax_in_front", "o", 0, False),
        ("base_2", "l", 1, True),
        ("causal_lse", "a", 1, False),
        ("causal_lse", "o", 0, False),
        ("unit_length", "l", 2, False),
        ("unit_length", "scale", -1, False),
        ("transposed", "l", 1, False),
        ("flash_decoding", "p", 1, False),
    ],
)
def test_rescales(graph: str, value: str, degree: int, binary: bool) -> None:
    rescale, reference = told(GRAPHS[graph], value)
    unit = Factor(Fraction(1), Powers.of({LN2: 1}) if binary else ONE)
    assert rescale == reference.times(unit).scaled(Fraction(degree))


def test_a_multiple_by_a_scalar_is_rescaled_by_it() -> None:
    """As of scores whose scale has gone behind their maximum."""
    _module, graph = parsed(MULTIPLE)
    ops = {op.results[0].name_hint: op for op in graph.operators}
    reference, tau = ops["r"].results[0], ops["tau"].results[0]
    (rescale,) = rescales([ops["l"]], reference, graph.operators).values()
    own = Form.of(reference, places_of(dims_of(reference)))
    assert rescale == own.times(factor_of_tensor(tau, ()).inverse())


MULTIPLE = """
algebra.graph @multiple [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %d = algebra.constant D : !algebra.tensor<[], f32>
  %tau = algebra.sqrt %d
  %r = algebra.reference %s dim 1
  %shifted = algebra.sub %s, %r
  %x = algebra.div %shifted, %tau
  %p = algebra.exp %x
  %l = algebra.reduce_sum %p dim 1
  algebra.return %l
}
"""
MOVED = """
algebra.graph @moved [M, L]
    (%s: !algebra.tensor<[M, L], f32>, %t: !algebra.tensor<[M, 1], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %r = algebra.reference %s dim 1
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %e = algebra.mul %d, %t
  %q = algebra.exp %e
  %n = algebra.reduce_sum %q dim 1
  %bent = algebra.tanh %p
  %wrong = algebra.reduce_sum %bent dim 1
  %lse = algebra.log %l
  %column = algebra.transpose %l permutation [1, 0]
  algebra.return %l
}
"""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("wrong", "'algebra.tanh' op: has no law for operands that are scaled"),
        ("lse", "'algebra.log' op: its result is shifted, not scaled"),
        ("n", "'algebra.reduce_sum' op: its result is scaled by a multiple of the"),
        ("column", "'algebra.transpose' op: its result has the dims of the reference"),
    ],
)
def test_what_cannot_be_rescaled(value: str, reason: str) -> None:
    _module, graph = parsed(MOVED)
    ops = {op.results[0].name_hint: op for op in graph.operators}
    with pytest.raises(Inhomogeneous, match=reason):
        rescales([ops[value]], ops["r"].results[0], graph.operators)
