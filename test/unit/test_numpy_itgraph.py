"""Plans run tile by tile: against NumPy, in every order, with tails, with mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.transforms.canonicalize import CanonicalizePass

from cleave.dialects.algebra import Algebra
from cleave.dialects.itgraph import ItGraph, PlanOp
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_itgraph import Order, execute_plan

Array: TypeAlias = NDArray[Any]

TEXTS = Path(__file__).parents[1] / "filecheck" / "dialects" / "itgraph"
ORDERS: tuple[Order, ...] = ("forward", "reverse", "random")


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Algebra, ItGraph):
        ctx.load_dialect(dialect)
    return ctx


def plans_in(text: str, verify: bool = True) -> dict[str, PlanOp]:
    module = Parser(context(), text).parse_module()
    if verify:
        module.verify()
    return {op.plan_name: op for op in module.ops if isinstance(op, PlanOp)}


def plan_of(text: str, verify: bool = True) -> PlanOp:
    (plan,) = plans_in(text, verify).values()
    return plan


def unbound(file: str) -> dict[str, PlanOp]:
    """The plans of a FileCheck test without what they say of sizes."""
    return plans_in(re.sub(r" where \[.*?\]", "", (TEXTS / file).read_text()))


@pytest.fixture(scope="module")
def examples() -> dict[str, PlanOp]:
    return unbound("ops.mlir")


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


def test_states_of_each_kind() -> None:
    """Rows take 0, 1 and 3 steps of 4 over 10 columns; the last one has a tail."""
    x = -np.arange(1.0, 31.0).reshape(3, 10)
    steps = np.array([0, 1, 3])
    sizes = {"M": 3, "N": 10, "BN": 4}
    largest, total, tiles = execute_plan(plan_of(KINDS), [x, steps], sizes)
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


def test_a_tail_that_is_not_masked_shows(examples: dict[str, PlanOp]) -> None:
    """Keys loaded as zeros count in a softmax: exp(0) = 1."""
    text = (TEXTS / "ops.mlir").read_text().split("// -----")[1]
    text = re.sub(r" where \[.*?\]", "", text)
    without = re.sub(
        r"(%t) = itgraph.tail (%s) .*", r"\1 = itgraph.copy \2 to rmem<linear>", text
    )
    q, k, v = (normal(np.random.default_rng(6), 1, 6, 4) for _ in range(3))
    sizes = {"H": 1, "M": 6, "L": 6, "D": 4, "S": 1, "C": 8, "BM": 8, "BL": 8}
    (masked,) = execute_plan(plan_of(text), [q, k, v], sizes)
    (unmasked,) = execute_plan(plan_of(without), [q, k, v], sizes)
    np.testing.assert_allclose(masked, attention(q, k, v), rtol=1e-12)
    assert np.abs(unmasked - masked).max() > 1e-2


def test_canonicalization_keeps_the_meaning() -> None:
    rng = np.random.default_rng(8)
    sizes = {"M": 6, "D": 8, "N": 8, "BM": 4, "BD": 3}
    inputs = [rng.standard_normal((6, 8)), rng.integers(0, 6, 6)]
    text = re.sub(r" where \[D.*?\]", "", (TEXTS / "canonicalize.mlir").read_text())
    before = Parser(context(), text).parse_module()
    after = before.clone()
    CanonicalizePass().apply(context(), after)
    pairs = list(zip(before.ops, after.ops, strict=True))
    assert len(pairs) == 5
    for old, new in pairs:
        assert isinstance(old, PlanOp)
        assert isinstance(new, PlanOp)
        assert not old.is_structurally_equivalent(new)
        used = {name: sizes[name] for name in old.symbol_names}
        arrays = inputs[: len(old.inputs)]
        (expected,) = execute_plan(old, arrays, used)
        (got,) = execute_plan(new, arrays, used)
        np.testing.assert_array_equal(got, expected)


################################################################################
# Errors                                                                       #
################################################################################


def simple(
    iterators: str = "i = 0 to M ceildiv BM",
    views: str = "%t = %x[i * BM, 0] tile [BM, N]",
    offsets: str = "[i * BM, 0]",
    body: str = "itgraph.yield %t",
) -> PlanOp:
    """A plan that copies, or does what no verified plan would do."""
    return plan_of(
        f"""
        itgraph.plan @simple [M, N, BM]
            (%x: !algebra.tensor<[M, N], f32>, %n: !algebra.tensor<[N], i32>)
            -> (!algebra.tensor<[M, N], f32>) {{
          %y = itgraph.kernel ({iterators}) ins ({views}, %gx = %x, %gn = %n)
              outs ({offsets} of !algebra.tensor<[M, N], f32>) {{
            {body}
          }}
          itgraph.return %y
        }}
        """,
        verify=False,
    )


SIZES = {"M": 10, "N": 4, "BM": 4}
X = np.arange(40.0).reshape(10, 4)
ROWS = np.array([3, 0, 9, 2])


def run(plan: PlanOp, rows: Array = ROWS, strict: bool = False) -> Array:
    (out,) = execute_plan(plan, [X, rows], SIZES, strict=strict)
    return out


def looped(clauses: str, value: str = "%s", state: str = "sum %z") -> str:
    return f"""
        %z = algebra.constant 0 : !algebra.tensor<[BM, N], f32>
        %a = itgraph.loop {clauses} state (%ao = {state}) {{
          itgraph.next {value}
        }}
        itgraph.yield %a
    """


def test_a_copy_is_a_copy() -> None:
    assert np.array_equal(run(simple()), X)


BAD = {
    "hole": (
        simple(iterators="i = 0 to M floordiv BM"),
        "output %y: element [8, 0] is written 0 times, "
        "but each is written exactly once (wrong for 8 elements)",
    ),
    "overlap": (
        simple(offsets="[i * (BM - 1), 0]"),
        "output %y: element [3, 0] is written 2 times, "
        "but each is written exactly once (wrong for 8 elements)",
    ),
    "output outside": (
        simple(offsets="[i * M, 0]"),
        "'itgraph.kernel' op at i = 1: output 0: "
        "offset 10 of dim 0 is outside of 0 to 10",
    ),
    "negative offset": (
        simple(views="%t = %x[(i - 1) * BM, 0] tile [BM, N]"),
        "'itgraph.kernel' op at i = 0: view %t: offset -4 of dim 0 is negative",
    ),
    "far offset": (
        simple(views="%t = %x[i * 14, 0] tile [BM, N]"),
        "'itgraph.kernel' op at i = 1: view %t: "
        "offset 14 of dim 0 lies more than a tile (4) past its end (10)",
    ),
    "loop offset": (
        simple(body=looped("(j = 0 to 2) ins (%s = %gx[0, 3 - 4 * j] tile [BM, N])")),
        "'itgraph.loop' op at i = 0, j = 1: view %s: offset -1 of dim 1 is negative",
    ),
    "row": (
        simple(body=looped("(j = 0 to 1) ins (%s = %gx[gather %gn, 0] tile [BM, N])")),
        "'itgraph.loop' op at i = 0, j = 0: view %s: dim 0 has no row 10 to gather "
        "(rows: 10)",
    ),
    "table": (
        simple(body=looped("(j = 0 to n) let (n = %gn[N])", "%t")),
        "'itgraph.loop' op at i = 0: let n: index 4 of dim 0 is outside of its table "
        "(0 to 4)",
    ),
    "tiles": (
        simple(body=looped("(j = 0 to 2)", "%t", "tiles %z[j, 0]")),
        "'itgraph.loop' op at i = 0: tiles state %a: element [1, 0] is written 2 "
        "times, but each is written at most once (wrong for 12 elements)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(case: str) -> None:
    plan, message = BAD[case]
    with pytest.raises(ExecutionError, match=re.escape(message)):
        run(plan, np.array([3, 0, 10, 2]))


def test_a_far_view_that_is_not_read_is_no_error() -> None:
    views = "%t = %x[i * BM, 0] tile [BM, N], %far = %x[i * 100, 0] tile [BM, N]"
    body = looped("(j = i to 1) ins (%s = %far[0, 0] tile [BM, N])")
    out = run(simple(views=views, body=body))
    assert np.array_equal(out[:4], X[:4])
    assert not out[4:].any()


def test_what_an_enclosing_view_does_not_show_is_poison() -> None:
    """Rows 3 to 5 of a tile of rows 0 to 3: whether 4 and 5 follow is not said."""
    views = "%t = %x[i * BM, 0] tile [BM, N]"
    body = looped("(j = 0 to 1) ins (%s = %t[3, 0] tile [BM, N])")
    out = run(simple(views=views, body=body))
    assert np.array_equal(out[0], X[3])
    assert np.isnan(out[1:4]).all()
    # The last tile ends with the tensor, past which reads give 0.
    assert np.array_equal(out[8:], np.zeros((2, 4)))
    with pytest.raises(ExecutionError, match="%s reads past the end of what it is cut"):
        run(simple(views=views, body=body), strict=True)


def test_a_computed_tile_has_nothing_beyond_it() -> None:
    body = """
        %e = algebra.neg %t
        %z = algebra.constant 0 : !algebra.tensor<[BM, N], f32>
        %a = itgraph.loop (j = 0 to 2) ins (%s = %e[0, j * 3] tile [BM, 3])
            state (%ao = tiles %z[0, j * 3]) {
          itgraph.next %s
        }
        itgraph.yield %a
    """
    # The second step reads columns 3 to 5 of 4, and stores column 3.
    assert np.array_equal(run(simple(body=body)), -X)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"M": 10, "N": 4}, "@p: symbol 'BM' has no size"),
        ({"M": 10, "N": 5, "BM": 4}, r"@p: .*N = 5"),
        ({"M": 10, "BM": 3}, r"@p: .*BM \| 8"),
        ({"M": 9, "BM": 4}, r"input %x has shape \(10,\), expected \(9,\)"),
    ],
)
def test_sizes_obey_the_facts(sizes: dict[str, int], message: str) -> None:
    plan = plan_of(
        "itgraph.plan @p [M, N, BM] where [N = 4, BM | 8]"
        "(%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {"
        "  itgraph.return %x }"
    )
    with pytest.raises(ExecutionError, match=message):
        execute_plan(plan, [np.zeros(10)], sizes)
    assert execute_plan(plan, [np.zeros(10)], {"M": 10, "BM": 4})[0].shape == (10,)


def test_inputs_are_counted() -> None:
    with pytest.raises(ExecutionError, match="@simple takes 2 inputs, got 1"):
        execute_plan(simple(), [X], SIZES)
