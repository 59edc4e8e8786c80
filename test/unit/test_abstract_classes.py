"""Abstract classes, the contexts that they are held against, and signs."""

import pytest

from cleave.passes.superoptimize.abstract import Abstraction
from cleave.passes.superoptimize.contexts import Contexts
from cleave.passes.superoptimize.semantics import Undefined
from cleave.passes.superoptimize.signs import Sign, Signed, Signs

SPLIT = {"k": ("s", "k/s")}


def abstraction(*, distribute: bool = True) -> Abstraction:
    return Abstraction(lambda dim: SPLIT.get(str(dim), (dim,)), distribute=distribute)


class TestClasses:
    def test_order_and_nesting_of_products_do_not_matter(self):
        a = abstraction()
        x, y, z = (a.leaf("input", n) for n in range(3))
        assert a.mul(a.mul(x, y), z) == a.mul(y, a.mul(z, x))
        assert a.div(a.mul(x, y), z) == a.mul(a.div(x, z), y)
        assert a.div(a.div(x, y), z) == a.div(x, a.mul(y, z))

    def test_nothing_is_cancelled(self):
        a = abstraction()
        x, y = a.leaf("input", 0), a.leaf("input", 1)
        assert a.div(a.mul(x, y), y) != x

    def test_a_contraction_is_a_product_and_a_sum(self):
        a = abstraction()
        x, y = a.leaf("input", 0), a.leaf("input", 1)
        assert a.contract(x, y, "n") == a.sum(a.mul(x, y), 0, "n")
        assert a.contract(x, y, "n") == a.mul(a.sum(x, 0, "n"), y)

    def test_reducing_the_parts_and_within_them_reduces_the_dim(self):
        a = abstraction()
        x = a.leaf("input", 0)
        assert a.sum(a.sum(x, 0, "k/s"), 0, "s") == a.sum(x, 0, "k")

    def test_views_do_not_count(self):
        a = abstraction()
        x = a.leaf("input", 0)
        assert a.transpose(a.reshape(x, (1, "m")), (1, 0)) == x

    def test_distribution_is_a_choice(self):
        for distribute in (False, True):
            a = abstraction(distribute=distribute)
            x, y, z = (a.leaf("input", n) for n in range(3))
            factored = a.mul(a.add(x, y), z)
            expanded = a.add(a.mul(x, z), a.mul(y, z))
            assert (factored == expanded) is distribute

    def test_opaque_sums_are_flat(self):
        a = abstraction(distribute=False)
        x, y, z = (a.leaf("input", n) for n in range(3))
        assert a.add(a.add(x, y), z) == a.add(x, a.add(y, z))
        assert a.has_opaque_sums

    def test_subtraction_adds_what_is_negated(self):
        a = abstraction()
        x, y = a.leaf("input", 0), a.leaf("input", 1)
        assert a.sub(x, y) == a.add(x, a.neg(y))
        assert a.sub(x, y) != a.add(x, y)

    def test_a_selection_of_zero_is_a_product_with_the_mask(self):
        a = abstraction()
        mask, x = a.leaf("input", 0), a.leaf("input", 1)
        assert a.select(mask, x, a.number(0.0)) == a.mul(mask, x)
        assert a.select(mask, x, a.number(1.0)) != a.mul(mask, x)

    def test_maxima_of_maxima_are_maxima(self):
        a = abstraction()
        x = a.leaf("input", 0)
        assert a.max(a.max(x, 0, "k/s"), 0, "s") == a.max(x, 0, "k")
        assert a.max(x, 0, "k") != a.sum(x, 0, "k")
        assert a.sum(a.max(x, 0, "k/s"), 0, "s") != a.max(x, 0, "k")
        assert a.max(a.exp(a.max(x, 0, "k/s")), 0, "s") != a.max(x, 0, "k")

    def test_a_shift_may_be_left_out(self):
        a = abstraction()
        x = a.leaf("input", 0)
        shift = a.max(x, 0, "k")
        assert a.sub(x, shift) != x
        assert a.ignoring_shifts().sub(x, shift) == x
        assert a.ignoring_shifts().add(shift, shift) == a.add(shift, shift)


class TestContexts:
    def test_parts_of_a_product_fit(self):
        a = abstraction()
        x, y, z = (a.leaf("input", n) for n in range(3))
        contexts = Contexts(a)
        contexts.add(a.contract(a.mul(x, y), z, "n"), a.dim_mask(["m"]))
        for part in (x, a.mul(x, z), a.sum(y, 0, "n"), a.contract(x, y, "n")):
            assert contexts.live_dims(part)
        for other in (a.mul(x, x), a.sum(a.sum(x, 0, "n"), 0, "n"), a.exp(x)):
            assert not contexts.live_dims(other)

    def test_a_dim_has_to_be_reduced_yet_or_to_be_in_the_result(self):
        a = abstraction()
        x, y = a.leaf("input", 0), a.leaf("input", 1)
        contexts = Contexts(a)
        contexts.add(a.contract(x, y, "n"), a.dim_mask(["m"]))
        assert contexts.admits(x, a.dim_mask(["m", "n"]))
        assert not contexts.admits(x, a.dim_mask(["m", "o"]))
        # Once n is reduced it must not be there any more.
        assert contexts.admits(a.sum(x, 0, "n"), a.dim_mask(["m"]))
        assert not contexts.admits(a.sum(x, 0, "n"), a.dim_mask(["n"]))

    def test_what_is_inside_a_function_has_a_context_of_its_own(self):
        a = abstraction()
        x, y = a.leaf("input", 0), a.leaf("input", 1)
        target = a.sum(a.exp(a.contract(x, y, "d")), 0, "n")
        contexts = Contexts(a)
        contexts.add(target, a.dim_mask(["m"]))
        # n is reduced outside of the exponential, d within it.
        assert contexts.admits(a.contract(x, y, "d"), a.dim_mask(["m", "n"]))
        assert not contexts.admits(a.exp(a.contract(x, y, "d")), a.dim_mask(["d"]))
        assert not contexts.live_dims(a.sum(a.contract(x, y, "d"), 0, "n"))

    def test_denominators_have_contexts(self):
        a = abstraction()
        x, y, z = (a.leaf("input", n) for n in range(3))
        contexts = Contexts(a)
        contexts.add(a.div(x, a.mul(y, z)), 0)
        assert contexts.live_dims(a.mul(y, z))
        assert contexts.live_dims(a.div(x, y))
        assert not contexts.live_dims(a.mul(x, y))
        assert not contexts.live_dims(a.div(y, x))

    def test_terms_of_a_sum_share_their_cofactor(self):
        a = abstraction()
        x, y, z = (a.leaf("input", n) for n in range(3))
        contexts = Contexts(a)
        contexts.add(a.add(a.mul(x, z), a.mul(y, z)), 0)
        assert contexts.live_dims(a.add(x, y))
        assert contexts.live_dims(a.mul(x, z))
        assert not contexts.live_dims(a.add(x, a.mul(y, z)))
        assert not contexts.live_dims(a.add(x, x))

    def test_some_terms_of_an_opaque_sum_fit(self):
        a = abstraction(distribute=False)
        x, y, z, w = (a.leaf("input", n) for n in range(4))
        contexts = Contexts(a)
        contexts.add(a.mul(a.add(a.add(x, y), z), w), 0)
        assert contexts.live_dims(a.add(x, z))
        assert not contexts.live_dims(a.add(x, w))
        assert not contexts.live_dims(a.mul(a.add(x, z), w))


POSITIVE, UNKNOWN = Signed(Sign.POSITIVE), Signed(Sign.UNKNOWN)
NON_NEGATIVE = Signed(Sign.NON_NEGATIVE)


class TestSigns:
    @pytest.fixture
    def signs(self) -> Signs:
        return Signs(assuming=False)

    def test_softmax_is_defined(self, signs: Signs):
        e = signs.exp(UNKNOWN)
        assert signs.div(e, signs.sum(e, 0, "n")).sign == Sign.POSITIVE

    def test_sums_of_squares_may_vanish(self, signs: Signs):
        squares = signs.sum(signs.square(UNKNOWN), 0, "n")
        assert squares.sign == Sign.NON_NEGATIVE
        assert signs.sqrt(squares).sign == Sign.NON_NEGATIVE
        with pytest.raises(Undefined):
            signs.div(UNKNOWN, signs.sqrt(squares))
        shifted = signs.add(squares, signs.number(1e-6))
        assert signs.sqrt(shifted).sign == Sign.POSITIVE

    def test_operations_outside_of_their_domain(self, signs: Signs):
        for operation in (signs.log, signs.sqrt):
            with pytest.raises(Undefined):
                operation(UNKNOWN)
        with pytest.raises(Undefined):
            signs.log(NON_NEGATIVE)
        with pytest.raises(Undefined):
            signs.div(POSITIVE, signs.sub(POSITIVE, POSITIVE))

    def test_assumptions_are_noted_by_value(self):
        signs = Signs(assuming=True)
        signs.div(UNKNOWN, Signed(Sign.UNKNOWN, 7))
        signs.log(Signed(Sign.NON_NEGATIVE, 8))
        # A root vanishes where its radicand does.
        signs.div(UNKNOWN, signs.sqrt(Signed(Sign.UNKNOWN, 9)))
        assert signs.assumed == {
            7: Sign.NON_ZERO,
            8: Sign.POSITIVE,
            9: Sign.NON_NEGATIVE | Sign.NON_ZERO,
        }

    def test_numbers(self, signs: Signs):
        assert signs.number(0.0).sign == Sign.NON_NEGATIVE
        assert signs.number(-1.0).sign == Sign.NON_ZERO
        assert signs.number("K").sign == Sign.POSITIVE

    @pytest.mark.parametrize(
        ("a", "b", "sign"),
        [
            (POSITIVE, NON_NEGATIVE, Sign.POSITIVE),
            (NON_NEGATIVE, NON_NEGATIVE, Sign.NON_NEGATIVE),
            (POSITIVE, UNKNOWN, Sign.UNKNOWN),
        ],
    )
    def test_sums(self, signs: Signs, a: Signed, b: Signed, sign: Sign):
        assert signs.add(a, b).sign == signs.add(b, a).sign == sign

    def test_maxima(self, signs: Signs):
        assert signs.maximum(POSITIVE, UNKNOWN).sign == Sign.POSITIVE
        assert signs.maximum(NON_NEGATIVE, UNKNOWN).sign == Sign.NON_NEGATIVE
        assert signs.maximum(UNKNOWN, UNKNOWN).sign == Sign.UNKNOWN
