"""The itgraph dialect as Python sees it: parts, scope, placement."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    ModuleOp,
    StringAttr,
    f16,
    f32,
    i32,
)
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriteWalker,
    TypeConversionPattern,
    attr_type_rewrite_pattern,
)
from xdsl.rewriter import Rewriter

from cleave.dialects.algebra.contraction import Matmul, ReduceMax
from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.views import Reshape
from cleave.dialects.dims import Dim, ceildiv, substitute, symbol
from cleave.dialects.facts import parse_fact_text
from cleave.dialects.itgraph import (
    Contribution,
    Copy,
    KernelOp,
    Let,
    LoopOp,
    Memory,
    NextOp,
    Output,
    PlanOp,
    Range,
    ReturnOp,
    State,
    Tail,
    TMap,
    View,
    YieldOp,
    entry_block,
    facts_at,
    levels_around,
    memory_of,
    plan_of,
    scope_of,
    set_memory,
)
from cleave.dialects.tensor import DimAttr, TensorType

M, L, D, BM, BL = map(symbol, ("M", "L", "D", "BM", "BL"))
i, j, n = map(symbol, ("i", "j", "n"))


def tensor(*dims: Dim) -> TensorType:
    return TensorType(dims, f16)


def built() -> PlanOp:
    """Row maxima of a product, with a length for each row tile."""
    arguments = Block(arg_types=[tensor(M, D), tensor(L, D), TensorType((M,), i32)])
    q, k, lengths = arguments.args
    for argument, name in zip(arguments.args, ("q", "k", "lengths"), strict=True):
        argument.name_hint = name
    views = [
        View(
            q, TMap((i * BM, 0), (BM, D)), memory=Memory("smem", "swizzled"), name="tq"
        ),
        View.whole(k, name="gk"),
    ]
    body = entry_block(views)
    tq, gk = body.args
    lowest = Constant(value=-1.0, result_type=TensorType((BM, 1), f32))
    inner = [View(gk, TMap((j * BL, 0), (BL, D)), name="tk")]
    states = [State("max", lowest.out, name="mo")]
    inside = entry_block(inner, states)
    scores = Matmul(tq, inside.args[0], transpose_rhs=True)
    tail = Tail(scores.out, dim=1, limit=n - j * BL, fill=-1.0)
    largest = ReduceMax(tail.out, dim=1)
    inside.add_ops([scores, tail, largest, NextOp([Contribution(largest.out)])])
    loop = LoopOp(Range("j", 0, ceildiv(n, BL)), inner, states, inside)
    body.add_ops([lowest, loop, YieldOp(loop.finals)])
    kernel = KernelOp(
        [Range("i", 0, ceildiv(M, BM))],
        views,
        [Output((i * BM, 0), TensorType((M, 1), f32))],
        body,
        lets=[Let("n", lengths, (i * BM,))],
        form="pipelined",
        threads=128,
    )
    flat = Reshape(kernel.outputs[0], shape=(M,))
    arguments.add_ops([kernel, flat, ReturnOp([flat.out])])
    return PlanOp(
        "maxima",
        ["M", "L", "D", "BM", "BL"],
        [parse_fact_text("BM = 64")],
        [TensorType((M,), f32)],
        arguments,
    )


WRITTEN = """
itgraph.plan @maxima [M, L, D, BM, BL] where [BM = 64]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %lengths: !algebra.tensor<[M], i32>) -> (!algebra.tensor<[M], f32>) {
  %0 = itgraph.kernel (i = 0 to M ceildiv BM) let (n = %lengths[i * BM])
      ins (%tq = %q[i * BM, 0] tile [BM, D] in smem<swizzled>, %gk = %k)
      outs ([i * BM, 0] of !algebra.tensor<[M, 1], f32>)
      attributes {form = "pipelined", threads = 128 : i64} {
    %1 = algebra.constant -1.0 : !algebra.tensor<[BM, 1], f32>
    %2 = itgraph.loop (j = 0 to n ceildiv BL) ins (%tk = %gk[j * BL, 0] tile [BL, D])
        state (%mo = max %1) {
      %3 = algebra.matmul %tq, %tk transpose_rhs
      %4 = itgraph.tail %3 dim 1 limit n - j * BL fill -1.0
      %5 = algebra.reduce_max %4 dim 1
      itgraph.next %5
    }
    itgraph.yield %2
  }
  %6 = algebra.reshape %0 to [M]
  itgraph.return %6
}
"""


def levels_of(plan: PlanOp) -> tuple[KernelOp, LoopOp]:
    kernel = next(op for op in plan.walk() if isinstance(op, KernelOp))
    return kernel, next(op for op in kernel.walk() if isinstance(op, LoopOp))


def test_what_is_built_is_what_is_written(
    parse_ir: Callable[[str], ModuleOp],
) -> None:
    module = ModuleOp([built()])
    module.verify()
    written = parse_ir(WRITTEN)
    assert module.is_structurally_equivalent(written)
    assert str(module) == str(written)


def test_levels_give_back_their_parts() -> None:
    kernel, loop = levels_of(built())
    q, k, lengths = kernel.operands
    assert kernel.ranges == (Range("i", 0, ceildiv(M, BM)),)
    assert kernel.ranges[0].extent == ceildiv(M, BM)
    assert kernel.views == (
        View(q, TMap((i * BM, 0), (BM, D)), (), Memory("smem", "swizzled"), "tq"),
        View(k, TMap((0, 0), (L, D)), (), None, "gk"),
    )
    assert kernel.lets == (Let("n", lengths, (i * BM,)),)
    assert kernel.outs == (Output((i * BM, 0), TensorType((M, 1), f32)),)
    assert kernel.output_tmaps == (TMap((i * BM, 0), (BM, 1)),)
    assert kernel.fixed_lets == frozenset()
    assert loop.range == Range("j", 0, ceildiv(n, BL))
    assert loop.states == (State("max", loop.initials[0], (), None, "mo"),)
    assert loop.contributions == (Contribution(loop.terminator.values[0]),)
    assert [argument.name_hint for argument in loop.state_arguments] == ["mo"]


def test_a_level_takes_over_a_body() -> None:
    plan = built()
    kernel, loop = levels_of(plan)
    set_memory(loop.state_arguments[0], Memory("rmem", "fragment"))
    for level in (kernel, loop):
        new = level.with_views(level.views, level.lets)
        assert new.properties == level.properties
        Rewriter.replace_op(level, new)
    plan.verify()


################################################################################
# Scope and placement                                                          #
################################################################################


def test_scope_and_facts_of_a_place() -> None:
    plan = built()
    kernel, loop = levels_of(plan)
    inside = loop.terminator
    assert list(levels_around(inside)) == [loop, kernel]
    assert plan_of(inside) is plan
    scope = scope_of(inside)
    assert scope is not None
    assert scope.symbols == ("M", "L", "D", "BM", "BL")
    assert scope.iterators == ("i", "n", "j")
    assert facts_at(inside).at_most(i * BM, M)
    assert not facts_at(kernel).at_most(i * BM, M)
    assert facts_at(inside).equal(BM, 64)


def test_a_kernel_outside_of_a_plan_has_no_scope_to_check() -> None:
    kernel, _ = levels_of(built())
    kernel.detach()
    kernel.verify()
    assert plan_of(kernel) is None
    assert scope_of(kernel) is None
    assert len(facts_at(kernel)) == 0


def test_placement_of_every_kind_of_value(
    parse_ir: Callable[[str], ModuleOp],
) -> None:
    plan = built()
    kernel, loop = levels_of(plan)
    fragment, gmem = Memory("rmem", "fragment"), Memory("gmem")
    scores = loop.body.block.first_op
    assert scores is not None
    values: list[SSAValue] = [
        kernel.view_arguments[1],
        loop.view_arguments[0],
        loop.state_arguments[0],
        scores.results[0],
    ]
    for value in values:
        assert memory_of(value) is None
        set_memory(value, fragment)
        assert memory_of(value) == fragment
    assert memory_of(kernel.view_arguments[0]) == Memory("smem", "swizzled")
    assert memory_of(loop.finals[0]) == fragment
    for value in (plan.inputs[0], kernel.outputs[0], plan.return_op.values[0]):
        assert memory_of(value) == gmem
        with pytest.raises(ValueError, match="has no memory of its own"):
            set_memory(value, gmem)
    with pytest.raises(ValueError, match="has no memory of its own"):
        set_memory(loop.finals[0], fragment)
    plan.verify()
    assert str(parse_ir(str(plan)).body.block.first_op) == str(plan)
    for value in values:
        set_memory(value, None)
        assert memory_of(value) is None
    set_memory(kernel.view_arguments[0], None)
    assert kernel.placement is None


def test_placement_of_a_copy_is_its_parameter() -> None:
    source = Constant(value=0.0, result_type=TensorType((4,), f32))
    copy = Copy(source.out, memory=Memory("smem"))
    Block([source, copy])
    assert memory_of(copy.out) == Memory("smem")
    set_memory(copy.out, Memory("smem", "swizzled"))
    assert copy.params["memory"] == Memory("smem", "swizzled")
    copy.verify()
    with pytest.raises(ValueError, match="is copied to some memory"):
        set_memory(copy.out, None)


def test_one_rewriting_of_dims_reaches_all_of_a_plan() -> None:
    class Bind(TypeConversionPattern):
        @attr_type_rewrite_pattern
        def convert_type(self, typ: DimAttr) -> DimAttr:
            return DimAttr(substitute(typ.data, {"BM": 64, "BL": 32, "D": 16}))

    plan = built()
    plan.where = ArrayAttr(())
    plan.symbols = ArrayAttr(StringAttr(name) for name in ("M", "L"))
    module = ModuleOp([plan])
    PatternRewriteWalker(Bind(recursive=True), apply_recursively=False).rewrite_module(
        module
    )
    module.verify()
    text = str(module)
    assert "BM" not in text
    assert "BL" not in text
    assert "64 * i, 0] tile [64, 16]" in text
    assert "limit n - 32 * j" in text
