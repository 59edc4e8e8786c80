"""What scheduling refuses, and what its result is like, where text is not the point."""

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import cast

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import parse_dim_text
from cleave.dialects.itgraph import KernelOp, LoopOp, PlanOp
from cleave.passes.insert_casts import InsertCastsPass
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import ScheduleBlocksPass, schedule_blocks
from cleave.passes.schedule_reductions import (
    ScheduleReductionsPass,
    schedule_reductions,
)
from cleave.passes.substitute_facts import SubstituteFactsPass

ParseIR = Callable[[str], ModuleOp]

MATMUL = """
algebra.graph @matmul [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}
"""
BLOCKS: dict[str, int | None] = {"M": 64, "N": 64}


def plan_of(text: str, parse_ir: ParseIR, tiles: dict[str, int | None]) -> PlanOp:
    return schedule_blocks(cast(GraphOp, parse_ir(text).body.block.first_op), tiles)


def loops_of(plan: PlanOp) -> list[LoopOp]:
    return [op for op in plan.walk() if isinstance(op, LoopOp)]


def test_no_tiles_are_one_threadblock(parse_ir: ParseIR) -> None:
    plan = plan_of(MATMUL, parse_ir, {})
    (kernel,) = (op for op in plan.walk() if isinstance(op, KernelOp))
    assert kernel.ranges == ()
    plan.verify()


def test_no_tiles_are_no_loops(parse_ir: ParseIR) -> None:
    plan = plan_of(MATMUL, parse_ir, BLOCKS)
    again = schedule_reductions(plan, {})
    assert str(again) == str(plan)
    assert again is not plan


def test_reductions_can_be_tiled_one_after_the_other(parse_ir: ParseIR) -> None:
    text = MATMUL.replace("algebra.matmul %x, %w", "algebra.matmul %h, %w").replace(
        "  %o =", "  %h = algebra.matmul %x, %x transpose_rhs\n  %o ="
    )
    text = text.replace("[K, N], f16>)", "[M, N], f16>)")
    plan = plan_of(text, parse_ir, {"N": 64})
    at_once = schedule_reductions(plan, {"M": 32, "K": 16})
    in_turn = schedule_reductions(schedule_reductions(plan, {"M": 32}), {"K": 16})
    assert [str(loop.range) for loop in loops_of(at_once)] == [
        str(loop.range) for loop in loops_of(in_turn)
    ]
    assert len(loops_of(at_once)) == 2


def test_a_tile_that_is_a_symbol(parse_ir: ParseIR) -> None:
    plan = schedule_reductions(plan_of(MATMUL, parse_ir, {"M": None}), {"K": None})
    assert plan.symbol_names == ["M", "K", "N", "BM", "BK"]
    assert [str(fact) for fact in plan.facts] == []
    (loop,) = loops_of(plan)
    assert loop.range.hi == parse_dim_text("K ceildiv BK")
    plan.verify()


def test_two_tiles_for_one_reduced_dim(parse_ir: ParseIR) -> None:
    plan = plan_of(
        MATMUL.replace("[M, K], f16", "[M, K * N], f16")
        .replace("[K, N], f16", "[K * N, 64], f16")
        .replace("[M, N], f32", "[M, 64], f32"),
        parse_ir,
        {"M": 64},
    )
    message = r"reduces K \* N, for which tiles are given by both K and N$"
    with pytest.raises(PassFailedException, match=message):
        schedule_reductions(plan, {"K": 16, "N": 16})


AMBIGUOUS = """
algebra.graph @ambiguous [M] where [M = 64]
    (%x: !algebra.tensor<[M, M], f16>, %w: !algebra.tensor<[M, M], bf16>)
    -> (!algebra.tensor<[M, M], f32>) {
  %a = algebra.relu %x
  %b = algebra.relu %w
  %o = algebra.matmul %a, %b
  algebra.return %o
}
"""
EMPTY = """
algebra.graph @empty [M, N] where [N = 4, M = N]
    (%x: !algebra.tensor<[2, M], f32>) -> (!algebra.tensor<[2, 1], f32>) {
  %c = algebra.constant 1.0 : !algebra.tensor<[2, M - N], f32>
  %o = algebra.reduce_sum %c dim 1
  algebra.return %o
}
"""


@pytest.mark.parametrize(
    ("pass_", "before", "fails"),
    [
        (InsertCastsPass(), "", AMBIGUOUS),
        (ScheduleBlocksPass(tile="K=64"), "", MATMUL),
        (
            ScheduleReductionsPass(tile="N=64"),
            "insert-casts,schedule-blocks{tile=M}",
            MATMUL,
        ),
        (
            PlanMemoryPass(),
            "insert-casts,schedule-blocks{tile=M}",
            MATMUL.replace("f16", "f32"),
        ),
        (SubstituteFactsPass(), "", EMPTY),
    ],
    ids=lambda value: value.name if isinstance(value, ModulePass) else "",
)
def test_a_pass_that_fails_changes_nothing(
    pass_: ModulePass,
    before: str,
    fails: str,
    parse_ir: ParseIR,
    cleave_opt: Callable[..., CompletedProcess[str]],
) -> None:
    """Neither the graph that it cannot handle nor those that stand beside it."""
    fine = """
    algebra.graph @fine [M, K, N] where [M = 8]
        (%x: !algebra.tensor<[M, K, N], f16>, %w: !algebra.tensor<[K, M, N], f16>)
        -> (!algebra.tensor<[M, K, 1], f16>) {
      %y = algebra.reduce_sum %x dim 2
      algebra.return %y
    }
    """
    arguments = ("-p", before) if before else ()
    outcome = cleave_opt(f"{fine}{fails}", *arguments)
    assert outcome.returncode == 0, outcome.stderr
    module = parse_ir(outcome.stdout)
    with pytest.raises(PassFailedException):
        pass_.apply(Context(), module)
    assert str(module) == str(parse_ir(outcome.stdout))
