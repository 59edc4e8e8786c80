"""Plans run tile by tile: against NumPy, in every order, with tails."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass

from cleave.dialects.facts import parse_fact_text
from cleave.dialects.itgraph import PlanOp
from cleave.dialects.tensor import FactAttr
from cleave.lowering.numpy_itgraph import Order, execute_plan

Array: TypeAlias = NDArray[Any]

TEXTS = Path(__file__).parents[1] / "filecheck" / "dialects" / "itgraph"
ORDERS: tuple[Order, ...] = ("forward", "reverse", "random")


Plans: TypeAlias = Callable[[str], dict[str, PlanOp]]
"""Reads the plans in a text, without the sizes that they bind, and verifies them."""


@pytest.fixture(scope="module")
def unbound(parse_ir: Callable[[str], ModuleOp]) -> Plans:
    def plans(text: str) -> dict[str, PlanOp]:
        module = parse_ir(re.sub(r" where \[\w+ = .*?\]", "", text))
        module.verify()
        return {op.plan_name: op for op in module.ops if isinstance(op, PlanOp)}

    return plans


@pytest.fixture(scope="module")
def examples(unbound: Plans) -> dict[str, PlanOp]:
    return unbound((TEXTS / "ops.mlir").read_text())


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float16).astype(np.float64)


def bf16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16).astype(np.float64)


def attention(q: Array, k: Array, v: Array, seen: Array | None = None) -> Array:
    scores = q @ k.swapaxes(-1, -2)
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


################################################################################
# The reference's three programs                                               #
################################################################################

# M, L, BM, BL: tails in both dims, 16 rows in a tile of 64, tiles that fit exactly.
SHAPES = [(40, 100, 16, 32), (16, 70, 64, 32), (32, 64, 16, 16), (1, 5, 8, 8)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("rows", "keys", "bm", "bl"), SHAPES)
def test_causal_attention(
    examples: dict[str, PlanOp], order: Order, rows: int, keys: int, bm: int, bl: int
) -> None:
    rng = np.random.default_rng(0)
    q, k, v = normal(rng, rows, 8), normal(rng, keys, 8), normal(rng, keys, 8)
    sizes = {"M": rows, "L": keys, "D": 8, "BM": bm, "BL": bl}
    (out,) = execute_plan(examples["attention"], [q, k, v], sizes, order=order)
    seen = np.arange(keys) <= np.arange(rows)[:, None] + keys - rows
    np.testing.assert_allclose(out, attention(q, k, v, seen), rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("splits", "chunk"), [(3, 48), (8, 16), (1, 112)])
def test_split_and_combine(
    examples: dict[str, PlanOp], order: Order, splits: int, chunk: int
) -> None:
    """Chunks that do not divide L, and with 8 splits one that holds nothing."""
    rng = np.random.default_rng(1)
    q, k, v = normal(rng, 2, 20, 8), normal(rng, 2, 100, 8), normal(rng, 2, 100, 8)
    sizes = {"H": 2, "M": 20, "L": 100, "D": 8, "S": splits, "C": chunk}
    tiles = {"BM": 16, "BL": 16}
    (out,) = execute_plan(examples["split"], [q, k, v], sizes | tiles, order=order)
    np.testing.assert_allclose(out, attention(q, k, v), rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_paged_decoding(examples: dict[str, PlanOp], order: Order) -> None:
    rng = np.random.default_rng(2)
    lengths = [5, 16, 23, 1]
    indptr = np.cumsum([0, *lengths])
    pages = rng.permutation(60)[: indptr[-1]]
    q, k, v = bf16(rng, 4, 2, 3, 8), bf16(rng, 60, 2, 8), bf16(rng, 60, 2, 8)
    sizes = {"B": 4, "HK": 2, "G": 3, "D": 8, "NP": 60, "NI": len(pages), "BL": 8}
    inputs = [q, k, v, indptr, pages]
    (out,) = execute_plan(examples["paged"], inputs, sizes, order=order)
    (rounded,) = execute_plan(examples["paged"], inputs, sizes, "rounded", order)
    assert rounded.dtype == ml_dtypes.bfloat16
    assert 0 < np.abs(rounded.astype(np.float64) - out).max() < 3e-2
    for b in range(4):
        rows = pages[indptr[b] : indptr[b + 1]]
        expected = attention(q[b], k[rows].swapaxes(0, 1), v[rows].swapaxes(0, 1))
        np.testing.assert_allclose(out[b], expected, rtol=1e-12)


################################################################################
# Numbers                                                                      #
################################################################################


def test_rounded_has_the_types_and_the_roundings(examples: dict[str, PlanOp]) -> None:
    rng = np.random.default_rng(3)
    q, k, v = normal(rng, 32, 8), normal(rng, 64, 8), normal(rng, 64, 8)
    sizes = {"M": 32, "L": 64, "D": 8, "BM": 16, "BL": 16}
    (exact,) = execute_plan(examples["attention"], [q, k, v], sizes)
    (rounded,) = execute_plan(examples["attention"], [q, k, v], sizes, "rounded")
    assert exact.dtype == np.float64
    assert rounded.dtype == np.float16
    error = np.abs(rounded.astype(np.float64) - exact)
    assert 0 < error.max() < 2e-3


def test_every_order_rounds_alike(examples: dict[str, PlanOp]) -> None:
    rng = np.random.default_rng(4)
    q, k, v = normal(rng, 2, 20, 8), normal(rng, 2, 100, 8), normal(rng, 2, 100, 8)
    sizes = {"H": 2, "M": 20, "L": 100, "D": 8, "S": 3, "C": 48, "BM": 16, "BL": 16}
    results = [
        execute_plan(examples["split"], [q, k, v], sizes, "rounded", order, seed=7)[0]
        for order in ORDERS
    ]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


KINDS = """
itgraph.plan @kinds [M, N, BN]
    (%x: !algebra.tensor<[M, N], f32>, %n: !algebra.tensor<[M], i32>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, N], f32>) {
  %a, %b, %c = itgraph.kernel (i = 0 to M) let (n = %n[i])
      ins (%gx = %x[i, 0] tile [1, N])
      outs ([i, 0] of !algebra.tensor<[M, 1], f32>,
            [i, 0] of !algebra.tensor<[M, 1], f32>,
            [i, 0] of !algebra.tensor<[M, N], f32>) {
    %m0 = algebra.constant -inf : !algebra.tensor<[1, 1], f32>
    %s0 = algebra.constant 1 : !algebra.tensor<[1, 1], f32>
    %t0 = algebra.constant -1 : !algebra.tensor<[1, N], f32>
    %m, %s, %t = itgraph.loop (j = 0 to n) ins (%tx = %gx[0, j * BN] tile [1, BN])
        state (%mo = max %m0, %so = sum %s0, %to = tiles %t0[0, j * BN]) {
      %rm = algebra.reduce_max %tx dim 1
      %rs = algebra.reduce_sum %tx dim 1
      itgraph.next %rm, %rs, %tx
    }
    itgraph.yield %m, %s, %t
  }
  itgraph.return %a, %b, %c
}
""".replace("-> (", "-> (!algebra.tensor<[M, 1], f32>, ")


def test_states_of_each_kind(unbound: Plans) -> None:
    """Rows take 0, 1 and 3 steps of 4 over 10 columns; the last one has a tail."""
    x = -np.arange(1.0, 31.0).reshape(3, 10)
    steps = np.array([0, 1, 3])
    sizes = {"M": 3, "N": 10, "BN": 4}
    largest, total, tiles = execute_plan(unbound(KINDS)["kinds"], [x, steps], sizes)
    # The tail is not masked, so that the last maximum is that of zeros.
    assert largest.ravel().tolist() == [-np.inf, -11.0, 0.0]
    assert total.ravel().tolist() == [1.0, 1 + x[1, :4].sum(), 1 + x[2].sum()]
    expected = np.full((3, 10), -1.0)
    expected[1, :4], expected[2] = x[1, :4], x[2]
    assert np.array_equal(tiles, expected)


def test_views_between_kernels_and_planned_memory(examples: dict[str, PlanOp]) -> None:
    x = normal(np.random.default_rng(5), 10, 7)
    sizes = {"M": 7, "N": 10, "BM": 4, "BN": 4}
    out, same = execute_plan(examples["placed"], [x], sizes)
    np.testing.assert_allclose(out, np.exp(x.T).ravel(), rtol=1e-12)
    assert np.array_equal(same, x)


def test_one_tile_may_exceed_its_tensor(examples: dict[str, PlanOp]) -> None:
    x = normal(np.random.default_rng(9), 16, 3)
    (out,) = execute_plan(examples["one_tile"], [x], {"M": 16, "D": 3})
    assert np.array_equal(out, x)


def test_a_tail_that_is_not_masked_shows(unbound: Plans) -> None:
    """Keys loaded as zeros count in a softmax: exp(0) = 1."""
    text = (TEXTS / "ops.mlir").read_text()
    with_tail = unbound(text)["split"]
    no_tail = r"\1 = itgraph.copy \2 to rmem<linear>"
    without = unbound(re.sub(r"(%t) = itgraph.tail (%\w+) .*", no_tail, text))["split"]
    q, k, v = (normal(np.random.default_rng(6), 1, 6, 4) for _ in range(3))
    sizes = {"H": 1, "M": 6, "L": 6, "D": 4, "S": 1, "C": 8, "BM": 8, "BL": 8}
    (masked,) = execute_plan(with_tail, [q, k, v], sizes)
    (unmasked,) = execute_plan(without, [q, k, v], sizes)
    np.testing.assert_allclose(masked, attention(q, k, v), rtol=1e-12)
    assert np.abs(unmasked - masked).max() > 1e-2


def test_canonicalization_keeps_the_meaning(unbound: Plans) -> None:
    rng = np.random.default_rng(8)
    sizes = {"M": 6, "D": 8, "N": 8, "BM": 4, "BD": 3}
    inputs = [rng.standard_normal((6, 8)), rng.integers(0, 6, 6)]
    for name, plan in unbound((TEXTS / "canonicalize.mlir").read_text()).items():
        if name == "no_iterations":
            plan.where = ArrayAttr([FactAttr(parse_fact_text("D <= N"))])
        module = ModuleOp([plan.clone()])
        CanonicalizePass().apply(Context(), module)
        (new,) = module.ops
        assert isinstance(new, PlanOp)
        assert not plan.is_structurally_equivalent(new)
        used = {symbol: sizes[symbol] for symbol in plan.symbol_names}
        arrays = inputs[: len(plan.inputs)]
        (expected,) = execute_plan(plan, arrays, used)
        (got,) = execute_plan(new, arrays, used)
        np.testing.assert_array_equal(got, expected)
