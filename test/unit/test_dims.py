"""Symbolic dims: canonical form, folding, text, evaluation."""

import copy
import itertools
import operator
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest

from cleave.dialects.dims import (
    Call,
    Dim,
    DimSyntaxError,
    SymbolicDim,
    Term,
    ceildiv,
    compile_dims,
    dim_text,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    names_of,
    parse_dim_text,
    substitute,
    symbol,
    terms_of,
)

K, M, L, s, i, BM = (symbol(name) for name in ("K", "M", "L", "s", "i", "BM"))

# Canonical form


def test_a_name_is_one_symbol():
    assert symbol("K") == K
    assert hash(symbol("K")) == hash(K)
    assert symbol("K") != symbol("k")


@pytest.mark.parametrize("name", ["", "1K", "K-1", "K 1", "é", "min", "floordiv"])
def test_what_is_no_name_is_refused(name: str):
    with pytest.raises(ValueError, match=f"'{name}'"):
        symbol(name)


def test_a_constant_is_an_int():
    for dim in (K - K, K * 0, floordiv(K, K), mod(K * s, s), minimum(K, K) - K, 0 * K):
        assert type(dim) is int


def test_polynomially_equal_dims_are_equal():
    assert (i + 1) * BM == i * BM + BM
    assert (K + s) * (K - s) == K * K - s * s
    assert 3 - (K - 5) == 8 - K
    assert hash((i + 1) * BM) == hash(BM + BM * i)
    assert K + 1 != K


def test_a_dim_is_no_integer_and_no_other_type():
    assert K != 0
    assert K != "K"
    operations = operator.add, operator.sub, operator.mul, operator.mod
    # The type checker must not see what stands on the other side.
    others: list[Any] = ["1", 1.5, None]
    for operation, other in itertools.product(operations, others):
        for a, b in ((K, other), (other, K)):
            with pytest.raises(TypeError):
                operation(a, b)


def test_operators_agree_with_functions():
    assert K // s == floordiv(K, s)
    assert K % s == mod(K, s)
    assert 7 // s == floordiv(7, s)
    assert 7 % s == mod(7, s)


def test_copies_are_equal():
    dim = minimum(L, (i + 1) * BM) + ceildiv(K, s)
    assert pickle.loads(pickle.dumps(dim)) == dim
    assert copy.deepcopy(dim) == dim


def test_terms_are_in_the_order_of_the_text():
    dim = 3 * i * BM * BM - floordiv(K, s) + 2
    assert str(dim) == "3 * i * BM * BM - K floordiv s + 2"
    assert terms_of(dim) == (
        Term(3, (("i", 1), ("BM", 2))),
        Term(-1, ((Call("floordiv", (K, s)), 1),)),
        Term(2, ()),
    )
    assert sum(term.dim for term in terms_of(dim)) == dim
    assert terms_of(0) == ()
    assert names_of(dim) == {"i", "BM", "K", "s"}
    assert names_of(7) == frozenset()


# Folding


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("(K * s + s) floordiv s", "K + 1"),
        ("(K * s + i) floordiv s", "K + i floordiv s"),
        ("(i + 1) * (K + s) floordiv (K + s)", "i + 1"),
        ("(K * K - s * s) ceildiv (K - s)", "s + K"),
        ("K floordiv 1", "K"),
        ("(4 * K + 7) floordiv 4", "K + 1"),
        ("(4 * K + 7) ceildiv 4", "K + 2"),
        ("(4 * K + 7) mod 4", "3"),
        ("(K + 7) floordiv 4", "(K + 3) floordiv 4 + 1"),
        ("4 * K floordiv (2 * s)", "2 * K floordiv s"),
        ("i * BM floordiv (BM * L)", "i floordiv L"),
        ("6 * K * s mod (4 * s)", "2 * s * (3 * K mod 2)"),
        ("(-K) floordiv (-s)", "K floordiv s"),
        ("K * s mod s", "0"),
        ("0 floordiv s", "0"),
        ("K mod s mod s", "K mod s"),
        ("K mod s floordiv s", "0"),
        ("(-7) floordiv 2", "-4"),
        ("(-7) ceildiv 2", "-3"),
        ("(-7) mod 2", "1"),
        ("min(K, K + 1, L, 5, 7)", "min(K, L, 5)"),
        ("max(max(K, L), K - 1)", "max(K, L)"),
        ("min(L, K) - min(K, L)", "0"),
        ("min(K)", "K"),
    ],
)
def test_folds(text: str, folded: str):
    assert str(parse_dim_text(text)) == folded


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("K floordiv s * s", "K"),
        ("K floordiv s", "K ceildiv s"),
        ("min(K, 1)", "1"),
        ("max(K, 1)", "K"),
        ("K mod s", "0"),
        ("(K + s) floordiv (K - s)", "1"),
    ],
)
def test_assumes_nothing(text: str, other: str):
    assert parse_dim_text(text) != parse_dim_text(other)


@pytest.mark.parametrize("divide", [floordiv, ceildiv, mod])
def test_division_by_zero_is_refused(divide: Callable[[Dim, Dim], Dim]):
    with pytest.raises(ZeroDivisionError, match=r"division by zero: \(K \+ 1\) "):
        divide(K + 1, s - s)
    with pytest.raises(ZeroDivisionError, match="division by zero: 4 "):
        divide(4, 0)
    with pytest.raises(ZeroDivisionError, match="division by zero: 4 "):
        substitute(divide(K, s), {"K": 4, "s": 0})


# Text


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-3",
        "K",
        "-K",
        "L - M + 1",
        "1 - K",
        "-K - 1",
        "M - s * K",
        "i * BM + BM",
        "min(L, i * BM + BM + L - M) ceildiv BL",
        "z * C ceildiv BL",
        "K floordiv s",
        "-(K floordiv s)",
        "-2 * (K floordiv s)",
        "(-K) floordiv s",
        "(K floordiv s) ceildiv BK",
        "K floordiv (s * s)",
        "K floordiv (s ceildiv 2)",
        "K floordiv max(s, 2)",
        "BM * (K floordiv s)",
        "L - K floordiv s",
        "2 * K * K - 3",
        "(hi - lo) ceildiv BL",
        "max(K, 2) * min(K, max(L, M))",
    ],
)
def test_text_reads_back_as_written(text: str):
    assert dim_text(parse_dim_text(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a name, an integer or '(' at column 1 of ''"),
        ("K +", "expected a name, an integer or '(' at column 4 of 'K +'"),
        ("(K", "expected ')' at column 3 of '(K'"),
        ("min K", "expected '(' at column 5 of 'min K'"),
        ("K mod 4 5", "unexpected '5' at column 9 of 'K mod 4 5'"),
        ("2 ** K", "expected a name, an integer or '(' at column 4 of '2 ** K'"),
        ("K / 2", "unexpected '/' at column 3 of 'K / 2'"),
        ("é", "expected a name, an integer or '(' at column 1 of 'é'"),
    ],
)
def test_syntax_errors_say_where(text: str, message: str):
    with pytest.raises(DimSyntaxError) as error:
        parse_dim_text(text)
    assert str(error.value) == message


@pytest.mark.parametrize("text", ["mod", "K + mod", "K floordiv 0", "K mod (s - s)"])
def test_meaningless_text_is_a_syntax_error(text: str):
    with pytest.raises(DimSyntaxError):
        parse_dim_text(text)


PRINT_MANY = """
from cleave.dialects.dims import parse_dim_text
print(parse_dim_text("(a + b + C) * (d - E) + min(a, C, b floordiv d, 4) * (a mod C)"))
"""


def test_text_does_not_depend_on_hash_seeds():
    texts = {
        subprocess.run(
            [sys.executable, "-c", PRINT_MANY],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(texts) == 1


INTEGERS_ONLY = """
import sys
from cleave.dialects.dims import *
from cleave.dialects.facts import *
dim = parse_dim_text("min(3, 4 ceildiv 3) * 5")
assert evaluate(substitute(dim, {"K": 1}), {}) == 10
facts = Facts([parse_fact_text("2 | 4")])
facts.check()
assert facts.at_most(3, 4) and facts.divides(2, 4) and facts.equal(2, 2)
assert not {"sympy", "numpy"} & sys.modules.keys()
"""


def test_integers_load_neither_sympy_nor_numpy():
    subprocess.run([sys.executable, "-c", INTEGERS_ONLY], check=True)


# Values


def test_substitution_is_simultaneous_and_folds():
    assert substitute(K - s, {"K": s, "s": K}) == s - K
    assert substitute(ceildiv(M, BM) * i, {"M": 4096, "BM": 128}) == 32 * i
    assert substitute(floordiv(K, s), {"K": M * s}) == M
    assert substitute(min_ := minimum(K, 128), {"L": 4}) is min_
    assert substitute(7, {"K": 4}) == 7


def test_evaluation_names_what_is_missing():
    assert evaluate(K * s + 1, {"K": 3, "s": 4, "unused": 0}) == 13
    assert evaluate(5, {}) == 5
    with pytest.raises(KeyError, match="no value for symbol 's' of 's \\* K'"):
        evaluate(K * s, {"K": 3})
    with pytest.raises(ZeroDivisionError):
        evaluate(floordiv(K, s), {"K": 3, "s": 0})


def test_names_may_be_words_of_python():
    assert evaluate(symbol("lambda") * symbol("in"), {"lambda": 2, "in": 3}) == 6


def test_closed_forms_over_arrays():
    dims = [ceildiv(M, BM) * s, minimum(M, BM, 100) - mod(M, BM), ceildiv(M, BM), 7]
    m = np.array([[4096], [1000], [16]])
    bm = np.array([16, 64, 128])
    results = compile_dims(dims, ["M", "BM", "s"])(m, bm, 3)
    assert len(results) == len(dims)
    for dim, result in zip(dims, results, strict=True):
        assert result.shape == (3, 3)
        assert result.dtype == np.int64
        for (row, column), value in np.ndenumerate(result):
            values = {"M": int(m[row, 0]), "BM": int(bm[column]), "s": 3}
            assert value == evaluate(dim, values)


def test_closed_forms_need_values_for_all_names():
    with pytest.raises(KeyError, match="no values for symbol 's' of 's \\* K'"):
        compile_dims([K, K * s], ["K"])
    with pytest.raises(TypeError, match="1 arrays given for 2 names"):
        compile_dims([K * s], ["K", "s"])(np.arange(3))


# Random expressions, against Python's integers

NAMES = ("K", "s", "M", "i", "BM", "lo")

OfDims: TypeAlias = Callable[[Dim, Dim], Dim]
OfIntegers: TypeAlias = Callable[[int, int], int]

OPERATIONS: Mapping[str, tuple[OfDims, OfIntegers]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "floordiv": (floordiv, lambda a, b: a // b),
    "ceildiv": (ceildiv, lambda a, b: -(-a // b)),
    "mod": (mod, lambda a, b: a % b),
    "min": (minimum, min),
    "max": (maximum, max),
}


@dataclass(frozen=True)
class Sample:
    """One expression as a dim, as text with all brackets, and as a function."""

    dim: Dim
    text: str
    value: Callable[[Mapping[str, int]], int]


def random_sample(rng: random.Random, depth: int) -> Sample:
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.3:
            constant = rng.randint(0, 9)
            return Sample(constant, str(constant), lambda _: constant)
        name = rng.choice(NAMES)
        return Sample(symbol(name), name, lambda values: values[name])
    word = rng.choice(list(OPERATIONS))
    of_dims, of_integers = OPERATIONS[word]
    a = random_sample(rng, depth - 1)
    b = random_sample(rng, depth - 1)
    if b.dim == 0 and word in ("floordiv", "ceildiv", "mod"):
        b = Sample(3, "3", lambda _: 3)
    prefix, infix = f"{word}({a.text}, {b.text})", f"(({a.text}) {word} ({b.text}))"
    return Sample(
        of_dims(a.dim, b.dim),
        prefix if word in ("min", "max") else infix,
        lambda values: of_integers(a.value(values), b.value(values)),
    )


def test_random_expressions_read_back_and_agree_with_integers():
    rng = random.Random(20261129)
    compared = 0
    for _ in range(3000):
        sample = random_sample(rng, rng.randint(1, 4))
        assert parse_dim_text(dim_text(sample.dim)) == sample.dim
        assert parse_dim_text(sample.text) == sample.dim
        for _ in range(3):
            values = {name: rng.randint(0, 40) for name in NAMES}
            try:
                expected = sample.value(values)
            except ZeroDivisionError:
                # Folding may have removed the division.
                continue
            assert evaluate(sample.dim, values) == expected, f"{sample.text} {values}"
            compared += 1
    assert compared > 6000


def test_random_expressions_agree_over_arrays():
    rng = random.Random(7)
    samples = [random_sample(rng, 3) for _ in range(100)]
    dims = [sample.dim for sample in samples if isinstance(sample.dim, SymbolicDim)]
    values = {name: np.array([rng.randint(1, 40) for _ in range(50)]) for name in NAMES}
    with np.errstate(divide="ignore"):
        results = compile_dims(dims, NAMES)(*values.values())
    compared = 0
    for dim, result in zip(dims, results, strict=True):
        for index, value in enumerate(result):
            try:
                expected = evaluate(dim, {n: int(values[n][index]) for n in NAMES})
            except ZeroDivisionError:
                continue
            assert value == expected, str(dim)
            compared += 1
    assert compared > 1000
