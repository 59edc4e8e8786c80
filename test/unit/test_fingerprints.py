"""Arithmetic of fingerprints: exactness of residues, and the laws that they obey."""

import tracemalloc
from math import isqrt

import numpy as np
import pytest

from cleave.dialects.algebra.contraction import Matmul, ReduceSum
from cleave.dialects.algebra.elementwise import Sqrt, Square
from cleave.passes.superoptimize import modular, sampling
from cleave.passes.superoptimize.builder import GraphBuilder
from cleave.passes.superoptimize.field import TRIALS, Field, FieldValue
from cleave.passes.superoptimize.graph import Input, Leaf, SearchGraph, Step
from cleave.passes.superoptimize.modular import P, Q
from cleave.passes.superoptimize.sampling import draw
from cleave.passes.superoptimize.semantics import Dim, Undefined

EXTENTS: dict[Dim, int] = {1: 1, "m": 2, "k": 3, "n": 2, "s": 2}


@pytest.fixture
def field() -> Field:
    return Field(1, EXTENTS.__getitem__)


def equal(a: FieldValue, b: FieldValue) -> bool:
    return np.array_equal(a.p, b.p)


class TestModular:
    def test_the_moduli_are_what_they_are_said_to_be(self):
        for prime in (Q, P):
            assert all(prime % divisor for divisor in range(2, isqrt(prime) + 1))
        assert P == 2 * Q + 1
        assert P < 2**30
        assert P % 4 == Q % 4 == 3

    @pytest.mark.parametrize("terms", [1, 8, 9, 100, 5000])
    def test_matmul_of_the_largest_residues(self, terms: int):
        a = np.full((2, terms), P - 1, dtype=np.int64)
        b = np.full((terms, 3), P - 1, dtype=np.int64)
        # (P - 1) ** 2 is 1 modulo P.
        assert (modular.matmul(a, b, P) == terms % P).all()

    @pytest.mark.parametrize("terms", [8, 9, 333])
    def test_matmul_agrees_with_integers_of_any_size(self, terms: int):
        generator = np.random.default_rng(0)
        a = generator.integers(0, P, size=(2, 3, terms))
        b = generator.integers(0, P, size=(terms, 4))
        exact = np.matmul(a.astype(object), b.astype(object)) % P
        assert (modular.matmul(a, b, P) == exact).all()

    def test_long_sums_would_overflow_without_limbs(self):
        a = np.full((1, 9), P - 1, dtype=np.int64)
        b = np.full((9, 1), P - 1, dtype=np.int64)
        assert (np.matmul(a, b) % P != 9).all()

    def test_a_sum_longer_than_float64_can_hold_is_taken_in_pieces(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(modular, "_LIMB_TERMS", 16)
        a = np.full((1, 40), P - 1, dtype=np.int64)
        b = np.full((40, 1), P - 1, dtype=np.int64)
        assert (modular.matmul(a, b, P) == 40).all()

    @pytest.mark.parametrize("size", [1, 64, 65, 200])
    def test_inverse(self, size: int):
        x = np.random.default_rng(0).integers(1, P, size=size)
        inverse = modular.inverse(x, P)
        assert inverse is not None
        assert (x * inverse % P == 1).all()

    def test_zero_has_no_inverse(self):
        assert modular.inverse(np.array([3, 0]), P) is None

    def test_root_of_squares_and_of_others(self):
        x = np.random.default_rng(0).integers(1, P, size=50)
        square = x * x % P
        root = modular.root(square, P)
        assert (root * root % P == square).all()
        other = -square % P  # minus one is no square modulo a prime that is 3 modulo 4
        root = modular.root(other, P)
        assert (root * root % P == square).all()

    def test_powers(self):
        assert modular.powers(5, 8, 1009).tolist() == [5**i % 1009 for i in range(8)]


class TestLaws:
    def test_exponential_of_a_sum(self, field: Field):
        a, b = field.random(("m", "k")), field.random(("k",))
        assert equal(field.exp(field.add(a, b)), field.mul(field.exp(a), field.exp(b)))
        assert equal(field.exp(field.sub(a, b)), field.div(field.exp(a), field.exp(b)))

    def test_exponential_of_an_exponential_is_some_function(self, field: Field):
        a = field.random(("m",))
        once = field.exp(a)
        twice = field.exp(once)
        assert not equal(once, twice)
        assert equal(twice, field.exp(once))
        assert not equal(twice, field.exp(twice))

    def test_exponential_has_no_zero(self, field: Field):
        assert field.exp(field.random(("m", "k", "n"))).p.all()

    def test_products_distribute_over_sums(self, field: Field):
        a, b = field.random(("m", "k")), field.random(("m", "k"))
        c = field.random(("k", "n"))
        left = field.contract(field.add(a, b), c, "k")
        right = field.add(field.contract(a, c, "k"), field.contract(b, c, "k"))
        assert equal(left, right)

    def test_contraction_is_a_sum_of_products(self, field: Field):
        a, b = field.random(("m", "k")), field.random(("k", 1))
        product = field.mul(a, field.transpose(b, (1, 0)))
        assert equal(field.contract(a, b, "k"), field.sum(product, 1, "k"))

    def test_difference_and_negation(self, field: Field):
        a, b = field.random(("m",)), field.random(("m",))
        assert equal(field.sub(a, b), field.add(a, field.neg(b)))

    def test_division_undoes_multiplication(self, field: Field):
        a, b = field.random(("m", "k")), field.random(("m", 1))
        assert equal(field.div(field.mul(a, b), b), a)

    def test_division_by_zero_is_undefined(self, field: Field):
        a = field.random(("m",))
        with pytest.raises(Undefined, match="zero"):
            field.div(a, field.sub(a, a))

    def test_masks_are_multipliers(self, field: Field):
        mask, a = field.random(("m", "k")), field.random(("m", "k"))
        zero = field.number(0.0)
        assert equal(field.select(mask, a, zero), field.mul(mask, a))
        assert equal(field.select(mask, a, a), a)

    def test_broadcast_dims_in_front_do_not_matter(self, field: Field):
        a, b = field.random((1, "m", "k")), field.random(("k",))
        assert equal(
            field.mul(a, b).with_rank(2), field.mul(a.with_rank(2), b).with_rank(2)
        )


class TestNumbers:
    def test_short_numbers_are_exact(self, field: Field):
        number = field.number
        assert equal(field.mul(number(2), number(3.0)), number(6))
        assert equal(field.mul(number(0.125), number(8)), number(1.0))
        assert equal(field.add(number(-1.5), number(1.5)), number(0))

    def test_other_numbers_are_generic(self, field: Field):
        tenth = field.number(0.1)
        assert equal(tenth, field.number(0.1))
        assert not equal(tenth, field.number(0.2))
        assert not equal(field.add(tenth, tenth), field.number(0.2))
        assert equal(field.number(-0.1), field.neg(tenth))

    def test_positive_numbers_are_squares(self, field: Field):
        tenth = field.number(0.1)
        root = field.sqrt(tenth)
        assert equal(field.mul(root, root), tenth)

    def test_infinities_differ_from_numbers(self, field: Field):
        infinity = field.number(float("inf"))
        assert equal(field.neg(infinity), field.number(-float("inf")))
        assert not equal(infinity, field.number(-float("inf")))


class TestOpaque:
    def test_functions_and_arguments_are_told_apart(self, field: Field):
        a, b = field.random(("m",)), field.random(("m",))
        f = field.opaque("f", a)
        assert equal(f, field.opaque("f", a))
        assert not equal(f, field.opaque("g", a))
        assert not equal(f, field.opaque("f", b))
        assert not equal(field.opaque("f", a, b), field.opaque("f", b, a))

    def test_samples_of_a_trial_share_their_functions(self):
        field = Field(1, EXTENTS.__getitem__, samples=2 * TRIALS)
        a = field.random(("m",))
        first = a.map(lambda x: np.concatenate([x[:TRIALS], x[:TRIALS]]))
        f = field.opaque("f", first)
        assert (f.p[:TRIALS] == f.p[TRIALS:]).all()
        assert (f.p[0] != f.p[1]).any()

    def test_the_exponent_of_an_opaque_value_is_defined(self, field: Field):
        f = field.opaque("f", field.exp(field.random(("m",))))
        assert equal(field.exp(field.add(f, f)), field.mul(field.exp(f), field.exp(f)))


class TestMaximum:
    def test_maximum_of_maxima_of_parts(self, field: Field):
        parts = field.random(("s", "m", "k"))
        of_parts = field.max(field.max(parts, 2, "k"), 0, "s")
        whole = field.reshape(field.transpose(parts, (1, 0, 2)), ("m", "all"))
        assert equal(of_parts.with_rank(2), field.max(whole, 1, "all"))

    @pytest.fixture(autouse=True)
    def whole_extent(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(EXTENTS, "all", EXTENTS["s"] * EXTENTS["k"])

    def test_sum_of_maxima_is_no_maximum(self, field: Field):
        parts = field.random(("s", "m", "k"))
        partial = field.max(parts, 2, "k")
        assert not equal(field.sum(partial, 0, "s"), field.max(partial, 0, "s"))

    def test_maximum_does_not_depend_on_order(self, field: Field):
        a, b, c = (field.random(("m",)) for _ in range(3))
        maximum = field.maximum
        assert equal(maximum(maximum(a, b), c), maximum(b, maximum(c, a)))
        assert not equal(maximum(a, b), maximum(a, c))

    def test_maximum_is_no_sum(self, field: Field):
        a = field.random(("m", "k"))
        assert not equal(field.max(a, 1, "k"), field.sum(a, 1, "k"))


def squares_of_roots() -> SearchGraph:
    """
    The square of the root of each row's sum of squares, that sum itself, and a product
    of the inputs for which roots do not matter.
    """
    builder = GraphBuilder()
    shape = ("m", "k")
    leaf = builder.leaf(Leaf(Input(0), shape, "f32"))
    square = builder.node(Step.of(Square, {}), [leaf], [shape])
    rows = builder.node(Step.of(ReduceSum, {"dim": 1}), [square], [shape])
    root = builder.node(Step.of(Sqrt, {}), [rows], [("m", 1)])
    again = builder.node(Step.of(Square, {}), [root], [("m", 1)])
    other = builder.leaf(Leaf(Input(1), ("k", "n"), "f32"))
    product = builder.node(Step.of(Matmul, {}), [leaf, other], [shape, ("k", "n")])
    return builder.finish([again, rows, product])


def test_roots_hold_where_the_sample_is_conditioned():
    """One radicand a row, so ten of them together with their exponents."""
    extents: dict[Dim, int] = {1: 1, "m": 5, "k": 3, "n": 2}
    graph = squares_of_roots()
    for seed in range(5):
        sample = draw(graph, extents, seed)
        assert sample.roots_hold
        values = graph.evaluate(sample.field, sample.sources)
        first, second, _ = (values[output] for output in graph.outputs)
        assert equal(first, second)


def test_what_roots_depend_on_is_found_in_bounded_memory():
    """One at a time for 990 elements, each time with 9000 sums: that would be 2 GB."""
    extents: dict[Dim, int] = {1: 1, "m": 90, "k": 11, "n": 90}
    tracemalloc.start()
    try:
        sample = draw(squares_of_roots(), extents, 7)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sample.roots_hold
    assert peak < 40 << 20


@pytest.mark.parametrize("at_once", [1, 300])
def test_a_sample_does_not_depend_on_how_many_are_evaluated_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
):
    extents: dict[Dim, int] = {1: 1, "m": 5, "k": 3, "n": 2}
    graph = squares_of_roots()
    before = draw(graph, extents, 1)
    monkeypatch.setattr(sampling, "_AT_ONCE", at_once)
    after = draw(graph, extents, 1)
    assert after.roots_hold
    assert all(equal(before.sources[s], after.sources[s]) for s in before.sources)
