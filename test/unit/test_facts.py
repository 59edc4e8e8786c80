"""Facts: text, bindings, contradictions, and what is proved from them."""

import random
from collections.abc import Callable, Mapping

import pytest

from cleave.dialects.dims import (
    Dim,
    DimSyntaxError,
    ceildiv,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    parse_dim_text,
    symbol,
)
from cleave.dialects.facts import Fact, FactError, Facts, parse_fact_text

SIZES = ("K", "M", "N", "L", "C", "s", "BM", "BL", "BK")


def facts_of(text: str, **ranges: tuple[str, str]) -> Facts:
    """Facts separated by `;` about sizes, and ranges of iterators."""
    return Facts(
        (parse_fact_text(fact) for fact in text.split(";") if fact.strip()),
        SIZES,
        {i: (parse_dim_text(a), parse_dim_text(b)) for i, (a, b) in ranges.items()},
    )


ATTENTION = facts_of(
    "s | K; BL | C; M <= L; BM <= M",
    i=("0", "M ceildiv BM"),
    j=("0", "min(L, (i + 1) * BM + L - M) ceildiv BL"),
    z=("0", "s"),
)
"""Causal attention with a split of K, nothing bound."""

BOUND = facts_of(
    "s | K; K = 4096; M = 4096; BM = 128; L >= 128; L <= 1000",
    i=("0", "M ceildiv BM"),
)
"""Some symbols bound, s not."""

# Text


@pytest.mark.parametrize(
    "text",
    ["s | K", "M = 4096", "M >= 1", "M <= 8192", "BK | K floordiv s", "L - M >= 0"],
)
def test_text_reads_back_as_written(text: str):
    assert str(parse_fact_text(text)) == text


def test_facts_print_in_their_order():
    assert str(facts_of("s | K; M = 4096; s | K")) == "s | K, M = 4096"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M", "expected '|', '=', '>=' or '<=' at column 2 of 'M'"),
        ("M > 3", "expected '|', '=', '>=' or '<=' at column 5 of 'M > 3'"),
        ("M >= ", "expected a name, an integer or '(' at column 6 of 'M >= '"),
        ("s | K | M", "unexpected '|' at column 7 of 's | K | M'"),
    ],
)
def test_syntax_errors_say_where(text: str, message: str):
    with pytest.raises(DimSyntaxError) as error:
        parse_fact_text(text)
    assert str(error.value) == message


# Bindings


def test_bindings_are_resolved_transitively():
    facts = facts_of("M = N; N = s * K; 4 = s; K = L + 1")
    values = {name: str(value) for name, value in facts.binding.items()}
    assert values == {"M": "4 * L + 4", "N": "4 * L + 4", "s": "4", "K": "L + 1"}
    assert facts.resolve(parse_dim_text("M ceildiv s * N")) == parse_dim_text(
        "(L + 1) * (4 * L + 4)"
    )
    assert facts.resolve(7) == 7


def test_equations_bind_once_others_have_bound_their_names():
    assert facts_of("N + s - s = 3 * M; M = 4").binding == {"N": 12, "M": 4}
    assert facts_of("K = 2 * M; K = 6").binding == {"K": 6, "M": 3}
    assert facts_of("K = s * M; K = 6").binding == {"K": 6}
    assert facts_of("M = N; N = M").binding == {"M": symbol("N")}


def test_facts_are_not_changed_by_extending_them():
    facts = facts_of("s | K", i=("0", "M"))
    more = facts.extend(parse_fact_text("K = 64"), ranges={"j": (0, symbol("L"))})
    assert [str(fact) for fact in facts] == ["s | K"]
    assert [str(fact) for fact in more] == ["s | K", "K = 64"]
    assert facts.ranges.keys() == {"i"}
    assert more.ranges.keys() == {"i", "j"}
    assert more.symbols == facts.symbols
    assert (facts.binding, more.binding) == ({}, {"K": 64})
    more.binding["K"] = 5
    assert more.binding == {"K": 64}


# Contradictions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M = 4; M = 8", "M = 8 contradicts M = 4"),
        ("M = N; N = L; L = 4; M = 5", "N = L contradicts L = 4, M = N and M = 5"),
        ("M = N + 1; N = M", "N = M contradicts M = N + 1"),
        ("s | K; s = 3; K = 64", "s | K contradicts K = 64 and s = 3"),
        ("M = 2 * K + 1; 2 | M", "2 | M contradicts M = 2 * K + 1"),
        ("M >= 5; M = 4", "M >= 5 contradicts M = 4"),
        ("M <= 4; M >= 5; K >= 2", "M >= 5 contradicts M <= 4"),
        ("M <= L; K = 2; L <= M - 1", "L <= M - 1 contradicts M <= L"),
        ("s | K; K <= s - 1", "K <= s - 1 contradicts s | K"),
        ("K >= 4; M = K * s; s >= 2; M <= 7", "M <= 7 contradicts K >= 4"),
        ("M = 0", "M = 0, but M is a size, at least 1"),
        ("M <= 0", "no sizes satisfy M <= 0; a size is at least 1"),
        ("0 | K", "no sizes satisfy 0 | K; a size is at least 1"),
        ("M = K floordiv s; s = 0", "division by zero: K floordiv 0"),
    ],
)
def test_contradictions_are_named(text: str, message: str):
    with pytest.raises(FactError) as error:
        facts_of(text).check()
    assert str(error.value).startswith(message)
    assert error.value.facts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s | K; s = 4; K = 64; M = 4096",
        "s | K; 128 | K; M <= L; BL | C; C | L",
        "M = N; N = M; M >= 4; M <= 4",
        "s | 64; s >= 64",
    ],
)
def test_what_can_hold_is_accepted(text: str):
    facts_of(text).check()
    ATTENTION.check()
    BOUND.check()


# Proofs


@pytest.mark.parametrize(
    ("facts", "a", "b"),
    [
        ("s | K", "K floordiv s * s", "K"),
        ("s | K", "K ceildiv s", "K floordiv s"),
        ("s | K", "K mod s", "0"),
        ("s | K", "(K * M + s) floordiv s", "M * (K floordiv s) + 1"),
        ("s | K; s | M", "K * (M floordiv s)", "M * (K floordiv s)"),
        ("s | K; K = 4096", "4096 floordiv s * s", "4096"),
        ("s | K + M", "(K + M) floordiv s * s", "K + M"),
        ("4 | K; 6 | K", "K mod 12", "0"),
        ("M = 4096; BM = 128", "M ceildiv BM", "32"),
        ("M + N = 2 * L", "(M + N) * s", "2 * L * s"),
        ("M <= L", "min(M, L)", "M"),
        ("M <= 1", "M", "1"),
        ("M <= N - 1", "M floordiv N", "0"),
        ("M <= N", "M ceildiv N", "1"),
        ("M <= N - 1", "M mod N", "M"),
    ],
)
def test_equal(facts: str, a: str, b: str):
    dims = parse_dim_text(a), parse_dim_text(b)
    assert facts_of(facts).equal(*dims)
    assert not facts_of("").equal(*dims)


@pytest.mark.parametrize(
    ("facts", "a", "b"),
    [
        ("s | K", "s", "K"),
        ("BL | C", "BL", "z * C"),
        ("BL | C; C | L", "BL", "L * M + C"),
        ("s * BK | K", "BK", "K floordiv s"),
        ("s | K; BK | K floordiv s", "s * BK", "K"),
        ("s | K; 128 | K", "64", "K * M"),
        ("s | K; K = 4096", "s", "4096 * M"),
        ("K = 4096; s = 8", "s * 4", "K"),
        ("s | K", "K floordiv s", "K"),
        ("BL | C; BL | L", "BL", "min(L, z * C)"),
        ("s | K; s | M", "s", "K mod M"),
        ("K = L", "L", "K * 2"),
    ],
)
def test_divides(facts: str, a: str, b: str):
    dims = parse_dim_text(a), parse_dim_text(b)
    assert facts_of(facts).divides(*dims)
    assert not facts_of("").divides(*dims)


@pytest.mark.parametrize(
    ("facts", "a", "b"),
    [
        (ATTENTION, "i * BM", "M - 1"),
        (ATTENTION, "j * BL", "L - 1"),
        (ATTENTION, "j * BL", "i * BM + BM + L - M - 1"),
        (ATTENTION, "1", "min(BL, L - j * BL)"),
        (ATTENTION, "s", "K"),
        (ATTENTION, "K floordiv s", "K"),
        (ATTENTION, "z * (K floordiv s) + K floordiv s", "K"),
        (ATTENTION, "M ceildiv BM * BM", "M + BM - 1"),
        (BOUND, "(i + 1) * BM", "M"),
        (BOUND, "L ceildiv BM", "8"),
        (BOUND, "s", "4096"),
        (facts_of(""), "1", "K * M"),
        (facts_of(""), "min(K, M)", "K"),
        (facts_of(""), "min(K, M)", "max(M, L)"),
        (facts_of(""), "K mod s", "s - 1"),
        (facts_of(""), "K - s + 1", "s * (K floordiv s)"),
        (facts_of(""), "s * (K ceildiv s)", "K + s - 1"),
    ],
)
def test_at_most(facts: Facts, a: str, b: str):
    assert facts.at_most(parse_dim_text(a), parse_dim_text(b))
    assert not facts.at_most(parse_dim_text(b) + 1, parse_dim_text(a))


@pytest.mark.parametrize(
    ("facts", "a", "b"),
    [
        (ATTENTION, "M", "L - 1"),
        (ATTENTION, "i * BM + BM", "M"),
        (ATTENTION, "z * C", "L"),
        (ATTENTION, "2", "K"),
        (ATTENTION, "L * min(K - N, 0)", "M * min(K - N, 0) - 1"),
        (ATTENTION, "M * min(K - N, 0)", "L * min(K - N, 0)"),
        (facts_of(""), "K", "s * (K floordiv s)"),
        (facts_of(""), "s * (K floordiv s)", "K - 1"),
        (facts_of(""), "K + 1", "s * (K ceildiv s)"),
        (facts_of(""), "s * (K ceildiv s)", "K + s - 2"),
        (facts_of(""), "s", "K mod s + 1"),
        (facts_of(""), "K floordiv s", "K - 1"),
        (facts_of(""), "K mod (L - N)", "L - N - 1"),
        (facts_of(""), "(K - N) mod s", "K - N"),
        (facts_of(""), "min(K - N, 0)", "s * min(K - N, 0)"),
        (facts_of(""), "max(K, s)", "K"),
        (facts_of(""), "K", "min(K, s)"),
    ],
)
def test_what_does_not_follow_is_not_proved(facts: Facts, a: str, b: str):
    dims = parse_dim_text(a), parse_dim_text(b)
    assert not facts.at_most(*dims)
    assert not facts.equal(*dims)


@pytest.mark.parametrize(
    ("facts", "dim", "bounds"),
    [
        (BOUND, "7", (7, 7)),
        (BOUND, "M", (4096, 4096)),
        (BOUND, "i * BM", (0, 3968)),
        (BOUND, "s", (1, 4096)),
        (BOUND, "K floordiv s", (1, 4096)),
        (facts_of("s | 64"), "s", (1, 64)),
        (BOUND, "L - i", (97, 1000)),
        (BOUND, "L ceildiv 128", (1, 8)),
        (BOUND, "L mod 128", (0, 127)),
        (BOUND, "min(L, 200)", (128, 200)),
        (BOUND, "max(L, 200) * L", (128 * 200, 1000 * 1000)),
        (BOUND, "-L", (-1000, -128)),
        (BOUND, "i - L", (-1000, -97)),
        (BOUND, "(i - L) floordiv 128", (-8, -1)),
        (BOUND, "(i - L) mod 128", (0, 127)),
        (BOUND, "N", (1, None)),
        (BOUND, "undeclared", (0, None)),
        (BOUND, "N - L", (-999, None)),
        (BOUND, "N floordiv L", (0, None)),
        (BOUND, "L floordiv N", (0, 1000)),
        (BOUND, "L floordiv (N - L)", (None, None)),
        (facts_of("2 * M + 1 <= 10; K * M <= 30; K >= 7"), "M", (1, 4)),
        (facts_of("M <= N; N <= L; L <= 9"), "M", (1, 9)),
        (facts_of("M >= 5; 8 | M; M <= 100"), "M floordiv 8", (1, 12)),
    ],
)
def test_bounds(facts: Facts, dim: str, bounds: tuple[int | None, int | None]):
    assert facts.bounds(parse_dim_text(dim)) == bounds


@pytest.mark.parametrize(
    ("facts", "dim", "simple"),
    [
        (ATTENTION, "s * (K floordiv s) + M", "K + M"),
        (ATTENTION, "z * C ceildiv BL", "z * (C floordiv BL)"),
        (ATTENTION, "K * M ceildiv s", "M * (K floordiv s)"),
        (ATTENTION, "min(L, M, L - j * BL)", "min(M, L - j * BL)"),
        (ATTENTION, "i * BM floordiv M", "0"),
        (ATTENTION, "(K + i) floordiv s", "(i + K) floordiv s"),
        (BOUND, "min(M, (i + 1) * BM)", "i * BM + BM"),
        (BOUND, "M ceildiv BM", "M ceildiv BM"),
        (BOUND, "max(L, 100)", "L"),
        (BOUND, "min(L, 100)", "100"),
        (BOUND, "(M + L mod 2000) * (1000 floordiv (L + 1))", None),
    ],
)
def test_simplify(facts: Facts, dim: str, simple: str | None):
    if simple is None:
        simple = "(L + M) * (1000 floordiv (L + 1))"
    assert facts.simplify(parse_dim_text(dim)) == parse_dim_text(simple)


def test_nothing_is_proved_of_a_range_that_is_not_declared():
    dims = parse_dim_text("i * BM"), parse_dim_text("M - 1")
    assert not facts_of("BM <= M").at_most(*dims)
    assert not Facts().at_most(1, symbol("M"))


# Random facts, against all that satisfies them

OPERATIONS: tuple[Callable[[Dim, Dim], Dim], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    floordiv,
    ceildiv,
    mod,
    minimum,
    maximum,
)


def random_dim(rng: random.Random, depth: int) -> Dim:
    if depth == 0 or rng.random() < 0.2:
        return symbol(rng.choice("KMsti")) if rng.random() < 0.8 else rng.randint(1, 6)
    a, b = random_dim(rng, depth - 1), random_dim(rng, depth - 1)
    try:
        return rng.choice(OPERATIONS)(a, b)
    except ZeroDivisionError:
        return a


def random_fact(rng: random.Random) -> Fact:
    K, M, s, t = (symbol(name) for name in "KMst")
    divisor = rng.choice([s, t, 2 * s, s * t, rng.randint(1, 6)])
    dividend = rng.choice([K, M, s, t, K * M, random_dim(rng, 1)])
    value = rng.choice([rng.randint(1, 24), random_dim(rng, 1)])
    return rng.choice(
        [
            Fact(divisor, "|", dividend),
            Fact(rng.choice([K, M, s, t]), "=", value),
            Fact(random_dim(rng, 1), ">=", random_dim(rng, 1)),
            Fact(random_dim(rng, 1), "<=", random_dim(rng, 1)),
        ]
    )


def holds(fact: Fact, values: Mapping[str, int]) -> bool:
    try:
        a, b = evaluate(fact.lhs, values), evaluate(fact.rhs, values)
    except ZeroDivisionError:
        return False
    match fact.relation:
        case "|":
            return b % a == 0 if a else b == 0
        case "=":
            return a == b
        case ">=":
            return a >= b
        case "<=":
            return a <= b


def random_values(
    rng: random.Random, facts: Facts, extent: int
) -> list[dict[str, int]]:
    """Up to 20 choices of values for the names that satisfy the facts."""
    sizes = [*range(1, 13), 16, 24, 64]
    found: list[dict[str, int]] = []
    for _ in range(600):
        values = {name: rng.choice(sizes) for name in "KMst"}
        values["i"] = rng.randrange(extent)
        if all(holds(fact, values) for fact in facts):
            found.append(values)
    return found[:20]


def test_random_proofs_hold_for_all_values():
    rng = random.Random(20261129)
    proved = 0
    for _ in range(60):
        extent = rng.randint(1, 12)
        some = [random_fact(rng) for _ in range(rng.randint(1, 4))]
        facts = Facts(some, "KMst", {"i": (0, extent)})
        models = random_values(rng, facts, extent)
        try:
            facts.check()
        except FactError:
            assert not models, f"{facts} hold for {models[0]}"
            continue
        for _ in range(8 if models else 0):
            a, b = random_dim(rng, 3), random_dim(rng, 2)
            try:
                simple, (low, high) = facts.simplify(a), facts.bounds(a)
                equal, at_most = facts.equal(a, b), facts.at_most(a, b)
                divides = facts.divides(b, a)
            except ZeroDivisionError:
                # A divisor is 0 once bound symbols are replaced.
                continue
            proved += equal + at_most + divides
            for values in models:
                try:
                    x, y = evaluate(a, values), evaluate(b, values)
                except ZeroDivisionError:
                    continue
                where = f"{facts}; a = {a}, b = {b}, {values}"
                assert evaluate(simple, values) == x, where
                assert not equal or x == y, where
                assert not at_most or x <= y, where
                assert not divides or (x % y == 0 if y else x == 0), where
                assert low is None or low <= x, where
                assert high is None or x <= high, where
    assert proved > 60
