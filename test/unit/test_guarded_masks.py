"""Masks that are written under a condition, and values that are read without them."""

from collections.abc import Callable
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_masks import ScheduleMasksPass
from cleave.passes.schedule_reductions import schedule_reductions

ParseIR = Callable[[str], ModuleOp]

BOTH = """
algebra.graph @both [M, L] where [M = 128, L = 256]
    (%x: !algebra.tensor<[M, L], f32>, %w: !algebra.tensor<[1, L], f32>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal 0 : !algebra.tensor<[M, L], i1>
  %s = algebra.mul %x, %w
  %seen = algebra.select %mask, %s, %zero
  %a = algebra.reduce_sum %seen dim 1
  %b = algebra.reduce_max %s dim 1
  algebra.return %a, %b
}
"""


def emitted(parse_ir: ParseIR, text: str) -> str:
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    plan = schedule_reductions(schedule_blocks(graph, {"M": 64}), {"L": 32})
    module = ModuleOp([plan])
    for pass_ in (ScheduleMasksPass(), PlanMemoryPass()):
        pass_.apply(Context(), module)
    return emit_module(plan)


def test_who_reads_a_value_without_its_mask_does_not_see_the_mask(parse_ir: ParseIR):
    text = emitted(parse_ir, BOTH)
    assert "seen[i, j] = s[i, j]" in text
    assert "seen[i, j] = T.Select(j <= i + (i_M * BM - i_L * BL), seen[i, j]" in text
    assert "T.reduce_sum(seen, a" in text
    assert "T.reduce_max(s, b" in text


def test_a_value_that_only_a_mask_reads_is_not_kept(parse_ir: ParseIR):
    tile = 'T.alloc_fragment((BM, BL), "float32")'
    both = emitted(parse_ir, BOTH)
    masked = emitted(parse_ir, BOTH.replace("reduce_max %s", "reduce_max %seen"))
    assert both.count(tile) == masked.count(tile) + 1
    assert "T.reduce_max(seen, b" in masked
