"""Plans that are wrong in ways that no verifier sees: what running them says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.itgraph import PlanOp
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_itgraph import execute_plan

Array: TypeAlias = NDArray[Any]
Parse: TypeAlias = Callable[[str], ModuleOp]


def simple(
    iterators: str = "i = 0 to M ceildiv BM",
    views: str = "%t = %x[i * BM, 0] tile [BM, N]",
    offsets: str = "[i * BM, 0]",
    body: str = "itgraph.yield %t",
) -> str:
    """A plan that copies, or does what no verified plan would do."""
    return f"""
        itgraph.plan @simple [M, N, BM]
            (%x: !algebra.tensor<[M, N], f32>, %n: !algebra.tensor<[N], i32>)
            -> (!algebra.tensor<[M, N], f32>) {{
          %y = itgraph.kernel ({iterators}) ins ({views}, %gx = %x, %gn = %n)
              outs ({offsets} of !algebra.tensor<[M, N], f32>) {{
            {body}
          }}
          itgraph.return %y
        }}
        """


SIZES = {"M": 10, "N": 4, "BM": 4}
X = np.arange(40.0).reshape(10, 4)
ROWS = np.array([3, 0, 9, 2])


def plan_of(module: ModuleOp) -> PlanOp:
    (plan,) = module.ops
    assert isinstance(plan, PlanOp)
    return plan


@pytest.fixture
def run(parse_ir: Parse) -> Callable[..., Array]:
    """`run(text)` is the output of a plan that `simple` wrote; it is not verified."""

    def run(text: str, rows: Array = ROWS, strict: bool = False) -> Array:
        plan = plan_of(parse_ir(text))
        (out,) = execute_plan(plan, [X, rows], SIZES, strict=strict)
        return out

    return run


def looped(clauses: str, value: str = "%s", state: str = "sum %z") -> str:
    return f"""
        %z = algebra.constant 0 : !algebra.tensor<[BM, N], f32>
        %a = itgraph.loop {clauses} state (%ao = {state}) {{
          itgraph.next {value}
        }}
        itgraph.yield %a
    """


def test_a_copy_is_a_copy(run: Callable[..., Array]) -> None:
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
def test_what_is_wrong_is_named(case: str, run: Callable[..., Array]) -> None:
    text, message = BAD[case]
    with pytest.raises(ExecutionError, match=re.escape(message)):
        run(text, np.array([3, 0, 10, 2]))


def test_a_far_view_that_is_not_read_is_no_error(run: Callable[..., Array]) -> None:
    views = "%t = %x[i * BM, 0] tile [BM, N], %far = %x[i * 100, 0] tile [BM, N]"
    body = looped("(j = i to 1) ins (%s = %far[0, 0] tile [BM, N])")
    out = run(simple(views=views, body=body))
    assert np.array_equal(out[:4], X[:4])
    assert not out[4:].any()


def test_what_an_enclosing_view_does_not_show_is_poison(
    run: Callable[..., Array],
) -> None:
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


def test_a_computed_tile_has_nothing_beyond_it(run: Callable[..., Array]) -> None:
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


def masks(columns: str) -> str:
    return f"""
        itgraph.plan @masks [M, N, BM] (%x: !algebra.tensor<[M, N], f32>)
            -> (!algebra.tensor<[M, N], i1>) {{
          %y = itgraph.kernel (i = 0 to M ceildiv BM)
              ins (%t = %x[i * BM, 0] tile [BM, N])
              outs ([i * BM, 0] of !algebra.tensor<[M, N], i1>) {{
            %c = algebra.causal diagonal i * BM : !algebra.tensor<[BM, N], i1>
            %d = itgraph.loop (j = 0 to 1) ins (%e = %c[0, {columns}] tile [BM, N])
                state (%do = carry %c) {{
              itgraph.next %e
            }}
            itgraph.yield %d
          }}
          itgraph.return %y
        }}
        """


def test_a_mask_cannot_be_poison(parse_ir: Parse) -> None:
    (out,) = execute_plan(plan_of(parse_ir(masks("0"))), [X], SIZES)
    assert np.array_equal(out, np.tril(np.ones((10, 4), bool)))
    with pytest.raises(ExecutionError, match="a mask, which cannot be poison"):
        execute_plan(plan_of(parse_ir(masks("1"))), [X], SIZES)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"M": 10, "N": 4}, "@p: symbol 'BM' has no size"),
        ({"M": 10, "N": 5, "BM": 4}, r"@p: .*N = 5"),
        ({"M": 10, "BM": 3}, r"@p: .*BM \| 8"),
        ({"M": 9, "BM": 4}, r"input %x has shape \(10,\), expected \(9,\)"),
    ],
)
def test_sizes_obey_the_facts(
    parse_ir: Parse, sizes: dict[str, int], message: str
) -> None:
    module = parse_ir(
        "itgraph.plan @p [M, N, BM] where [N = 4, BM | 8]"
        "(%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {"
        "  itgraph.return %x }"
    )
    plan = plan_of(module)
    with pytest.raises(ExecutionError, match=message):
        execute_plan(plan, [np.zeros(10)], sizes)
    assert execute_plan(plan, [np.zeros(10)], {"M": 10, "BM": 4})[0].shape == (10,)


def test_inputs_are_counted(parse_ir: Parse) -> None:
    with pytest.raises(ExecutionError, match="@simple takes 2 inputs, got 1"):
        execute_plan(plan_of(parse_ir(simple())), [X], SIZES)
