"""Loops that carry references, and loops that masks bound: by meaning, in any order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.elementwise import Exp, Exp2
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, evaluate, names_of, parse_dim_text
from cleave.dialects.itgraph import LoopOp, PlanOp
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_masks import schedule_masks
from cleave.passes.schedule_reductions import schedule_reductions
from cleave.passes.scheduling.visibility import positive_range

ParseIR = Callable[[str], ModuleOp]

ATTENTION = """
algebra.graph @attention [M, L, D] where [M = {m}, L = {n}, D = 16]
    (%q: !algebra.tensor<[M, D], f32>, %k: !algebra.tensor<[L, D], f32>,
     %v: !algebra.tensor<[L, D], f32>)
    -> (!algebra.tensor<[M, D], f32>, !algebra.tensor<[M, 1], f32>) {{
  %low = algebra.constant -inf : !algebra.tensor<[], f32>
  %s0 = algebra.matmul %q, %k transpose_rhs
  {mask}
  %r = algebra.reference %s dim 1
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %g = algebra.log %l
  %lse = algebra.add %g, %r
  algebra.return %o, %lse
}}
"""
MASKS = {
    "none": "%zero = algebra.constant 0.0 : !algebra.tensor<[], f32>\n"
    "%s = algebra.add %s0, %zero",
    "causal": "%c = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>\n"
    "%s = algebra.select %c, %s0, %low",
    "window": "%c = algebra.window diagonal L - M size 40 "
    ": !algebra.tensor<[M, L], i1>\n%s = algebra.select %c, %s0, %low",
}


@dataclass
class Scheduled:
    graph: GraphOp
    plan: PlanOp

    @property
    def loops(self) -> list[LoopOp]:
        return [op for op in self.plan.walk() if isinstance(op, LoopOp)]

    def require_equal(self, scale: float = 1.0) -> None:
        rng = np.random.default_rng(7)
        shapes = [t.dims for t in self.graph.input_types]
        sizes = cast(dict[str, int], dict(self.graph.facts.binding))
        inputs = [
            scale * rng.standard_normal([evaluate(d, sizes) for d in dims])
            for dims in shapes
        ]
        expected = execute_graph(self.graph, inputs)
        for order in ("forward", "reverse", "random"):
            results = execute_plan(self.plan, inputs, order=order)
            for result, reference in zip(results, expected, strict=True):
                np.testing.assert_allclose(result, reference, rtol=1e-12, atol=1e-12)


def scheduled(
    parse_ir: ParseIR, mask: str, m: int, n: int, tile: int, bound: bool = True
) -> Scheduled:
    text = ATTENTION.format(m=m, n=n, mask=MASKS[mask])
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    graph.verify()
    plan = schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": tile})
    result = Scheduled(graph, plan)
    for loop in result.loops if bound else ():
        schedule_masks(loop)
    plan.verify()
    return result


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("m", "n"), [(64, 128), (100, 100), (7, 203), (96, 99)])
@pytest.mark.parametrize("tile", [16, 48])
def test_one_loop_carries_the_reference(
    parse_ir: ParseIR, mask: str, m: int, n: int, tile: int
):
    result = scheduled(parse_ir, mask, m, n, tile)
    (loop,) = result.loops
    assert [state.kind for state in loop.states] == ["carry", "sum", "sum"]
    assert [given.rescale is not None for given in loop.contributions] == [0, 1, 1]
    result.require_equal()


def test_logits_that_overflow_an_exp_do_not_matter(parse_ir: ParseIR):
    scheduled(parse_ir, "causal", 64, 128, 16).require_equal(scale=30.0)


def iterations(loop: LoopOp, plan: PlanOp, row: int) -> list[int]:
    sizes: dict[str, Any] = {**plan.facts.binding, "i_M": row}
    lo, hi = (evaluate(dim, sizes) for dim in (loop.range.lo, loop.range.hi))
    return list(range(lo, hi))


def test_tiles_that_a_mask_hides_are_not_visited(parse_ir: ParseIR):
    causal = scheduled(parse_ir, "causal", 128, 128, 32)
    (loop,) = causal.loops
    assert [iterations(loop, causal.plan, row) for row in range(4)] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
    ]
    window = scheduled(parse_ir, "window", 128, 128, 32)
    (loop,) = window.loops
    # 40 keys up to the diagonal: rows 96 to 127 see keys 57 to 127.
    assert [iterations(loop, window.plan, row) for row in range(4)] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [1, 2, 3],
    ]


def test_rows_that_see_nothing_visit_one_tile(parse_ir: ParseIR):
    """A kernel waits in its loop for what was loaded before it."""
    for mask in ("causal", "window"):
        short = scheduled(parse_ir, mask, 128, 40, 16)
        (loop,) = short.loops
        # 40 keys for the last of 128 rows: the first 88 see none.
        assert [iterations(loop, short.plan, row) for row in range(4)] == [
            [0],
            [0],
            [0],
            [0, 1, 2],
        ]


def test_an_iteration_that_counts_masked_elements_is_kept(parse_ir: ParseIR):
    """Masked scores of 0, not -inf, are terms of the sum: no tile can be left out."""
    text = ATTENTION.format(m=64, n=64, mask=MASKS["causal"]).replace("-inf", "0.0")
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    plan = schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": 16})
    result = Scheduled(graph, plan)
    for loop in result.loops:
        schedule_masks(loop)
        assert (loop.range.lo, str(loop.range.hi)) == (0, "L ceildiv BL")
    result.require_equal()


def test_a_normalization_in_front_of_the_sum_needs_two_loops(parse_ir: ParseIR):
    text = ATTENTION.format(m=64, n=96, mask=MASKS["none"]).replace(
        "%a = algebra.matmul %p, %v\n  %o = algebra.div %a, %l",
        "%n = algebra.div %p, %l\n  %o = algebra.matmul %n, %v",
    )
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    plan = schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": 16})
    result = Scheduled(graph, plan)
    kinds = [[state.kind for state in loop.states] for loop in result.loops]
    assert kinds == [["carry", "sum"], ["sum"]]
    result.require_equal()


def test_a_sum_that_is_not_homogeneous_in_the_reference_waits_for_it(parse_ir: ParseIR):
    text = ATTENTION.format(m=64, n=96, mask=MASKS["none"]).replace(
        "%l = algebra.reduce_sum %p dim 1",
        "%s2 = algebra.square %s0\n  %p1 = algebra.add %p, %s2\n"
        "  %l = algebra.reduce_sum %p1 dim 1",
    )
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    plan = schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": 16})
    result = Scheduled(graph, plan)
    kinds = [[state.kind for state in loop.states] for loop in result.loops]
    assert kinds == [["max"], ["sum", "sum"]]
    result.require_equal()


def test_a_square_is_rescaled_twice(parse_ir: ParseIR):
    text = ATTENTION.format(m=64, n=96, mask=MASKS["none"]).replace(
        "%l = algebra.reduce_sum %p dim 1",
        "%p2 = algebra.square %p\n  %l2 = algebra.reduce_sum %p2 dim 1\n"
        "  %l = algebra.sqrt %l2",
    )
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    plan = schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": 16})
    result = Scheduled(graph, plan)
    (loop,) = result.loops
    assert [state.kind for state in loop.states] == ["carry", "sum", "sum"]
    result.require_equal()


@pytest.mark.parametrize(
    ("exponentials", "rescaling"),
    [
        ("%p = algebra.exp %d", Exp),
        ("%p = algebra.exp2 %d", Exp2),
        (
            "%p1 = algebra.exp %d\n  %r2 = algebra.reference %s0 dim 1\n"
            "  %d2 = algebra.sub %s0, %r2\n  %p2 = algebra.exp2 %d2\n"
            "  %p = algebra.mul %p1, %p2",
            Exp,
        ),
    ],
    ids=["exp", "exp2", "both"],
)
def test_sums_are_rescaled_by_powers_of_what_the_terms_are(
    parse_ir: ParseIR, exponentials: str, rescaling: type[Operator]
):
    text = ATTENTION.format(m=64, n=96, mask=MASKS["causal"]).replace(
        "%p = algebra.exp %d", exponentials
    )
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    plan = schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": 16})
    result = Scheduled(graph, plan)
    (loop,) = result.loops
    factors = {type(c.rescale.owner) for c in loop.contributions if c.rescale}
    assert factors == {rescaling}
    result.require_equal()


@pytest.mark.parametrize(
    "text", ["K - i * B", "i * B - K", "7 - i * B - B", "i * B + B - 5", "3 - i"]
)
def test_positive_range_against_counting(text: str):
    dim: Dim = parse_dim_text(text)
    for sizes in ({"B": b, "K": k} for b in (1, 3, 4) for k in (1, 5, 12)):
        lo, hi = positive_range(dim, "i")
        found = {i for i in range(40) if evaluate(dim, {**sizes, "i": i}) > 0}
        first = 0 if lo is None else max(0, evaluate(lo, sizes))
        end = 40 if hi is None else max(0, evaluate(hi, sizes))
        assert names_of(dim) >= {"i"}
        assert found == set(range(first, end))


def test_positive_range_of_what_is_not_linear():
    assert positive_range(parse_dim_text("i * i - K"), "i") == (None, None)
    assert positive_range(parse_dim_text("K"), "i") == (None, None)
    assert positive_range(parse_dim_text("i * B - i * C"), "i") == (None, None)
