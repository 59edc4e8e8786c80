"""Plans of several kernels: composed of pieces, executed, lowered."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import names_of, symbol
from cleave.dialects.facts import Fact
from cleave.dialects.itgraph import KernelOp, PlanOp
from cleave.dialects.tensor import FactAttr
from cleave.lowering.cuda import build
from cleave.lowering.generated import GeneratedModule, load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph
from cleave.lowering.numpy_itgraph import Order, execute_plan
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.toolchain import find_nvcc
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partition_reductions import pieces_of
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.partitioning.composition import compose
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.piece import KERNEL
from cleave.passes.partitioning.reduction_cuts import ReductionCut, ReductionCuts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_reductions import schedule_reductions
from cleave.passes.scheduling.dim_choices import DimUses
from cleave.passes.stabilize_exp import StabilizeExpPass

ParseIR = Callable[[str], ModuleOp]
Tiles = dict[str, int | None]

ROOT = Path(__file__).parents[2]
GRAPHS = [
    "examples/attention_softmax",
    "examples/cross_entropy",
    "examples/gated_mlp",
    "examples/gqa",
    "examples/layernorm_matmul",
    "examples/lora",
    "examples/mla_decode",
    "examples/rmsnorm_matmul",
    "examples/softmax",
    "examples/swiglu_halves",
    "test/graphs/attention_projection",
    "test/graphs/column_norm",
    "test/graphs/deep_chain",
    "test/graphs/reference_attention",
    "test/graphs/two_outputs",
    "test/graphs/views",
]
ORDERS: tuple[Order, ...] = ("forward", "reverse", "random")
H200 = load_hardware("h200")

# The paper's Fig. 5b for a group of queries that share keys and values.
FIG5B = """
algebra.graph @fig5b [H, M, L, D, s] where [s | L]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %ks = algebra.split %k dim 1 count s
  %vs = algebra.split %v dim 1 count s
  %s = algebra.matmul %q, %ks transpose_rhs
  %p = algebra.exp %s
  %as = algebra.matmul %p, %vs
  %ls = algebra.reduce_sum %p dim 3
  %a = algebra.reduce_sum %as dim 0
  %l = algebra.reduce_sum %ls dim 0
  %n = algebra.div %a, %l
  %o = algebra.reshape %n to [H, M, D]
  %log = algebra.log %l
  %lse = algebra.reshape %log to [H, M, 1]
  algebra.return %o, %lse
}"""


def bound(graph: GraphOp, sizes: dict[str, int]) -> GraphOp:
    """The graph with these sizes in the place of others."""
    facts = [fact for fact in graph.facts if fact.relation != "="]
    facts += [Fact(symbol(name), "=", size) for name, size in sizes.items()]
    graph.where = ArrayAttr(map(FactAttr, facts))
    graph.verify()
    return graph


def graph_in(parse_ir: ParseIR, text: str, sizes: dict[str, int]) -> GraphOp:
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    return bound(graph, sizes)


def scheduled(piece: GraphOp, blocks: Tiles, reductions: Tiles) -> PlanOp:
    insert_casts(piece)
    plan = schedule_reductions(schedule_blocks(piece, blocks), reductions)
    plan.verify()
    return plan


def random_inputs(graph: GraphOp) -> list[Any]:
    rng = np.random.default_rng(0)
    sizes = {n: cast(int, size) for n, size in graph.facts.binding.items()}
    shapes = [evaluate_dims(type_.dims, sizes) for type_ in graph.input_types]
    return [rng.standard_normal(shape) * 0.3 for shape in shapes]


def require_equal(graph: GraphOp, plan: PlanOp) -> None:
    """Check that a plan computes a graph, in any order, also once memory is planned."""
    inputs = random_inputs(graph)
    expected = execute_graph(graph, inputs)
    module = ModuleOp([plan.clone()])
    module.verify()
    for pass_ in (None, PlanMemoryPass()):
        if pass_ is not None:
            pass_.apply(Context(), module)
            module.verify()
        (planned,) = module.ops
        assert isinstance(planned, PlanOp)
        for order in ORDERS:
            found = execute_plan(planned, inputs, order=order)
            for result, array in zip(found, expected, strict=True):
                np.testing.assert_allclose(result, array, rtol=1e-9, atol=1e-12)


def kernels_of(plan: PlanOp) -> list[KernelOp]:
    return [op for op in plan.body.block.ops if isinstance(op, KernelOp)]


def scheduled_somehow(piece: GraphOp) -> PlanOp:
    """A schedule with small tiles of all dims that can have one."""
    insert_casts(piece)
    names = {str(dim) for type_ in piece.output_types for dim in type_.dims}
    chosen: Tiles = {}
    for name in piece.symbol_names:
        for size in (1, 2) if name in names else ():
            try:
                schedule_blocks(piece, {**chosen, name: size})
            except PassFailedException:
                continue
            chosen[name] = size
    reduced = {
        min(names)
        for op in piece.operators
        if op.REDUCTION is not None
        if (names := names_of(op.expression.reduced[0]))
    }
    return schedule_reductions(
        schedule_blocks(piece, chosen), {n: 3 for n in sorted(reduced - {*chosen})}
    )


def cuts_of(graph: GraphOp) -> Iterator[Sequence[GraphOp]]:
    cuts = ReductionCuts(graph)
    for number, found in enumerate(islice(cuts.by_traffic(), 2)):
        yield pieces_of(found, f"cut{number}")
    yield pieces_of(cuts.unfused(), "unfused")


def first_cut(graph: GraphOp) -> ReductionCut:
    return next(ReductionCuts(graph).by_traffic())


@pytest.mark.parametrize("name", GRAPHS)
def test_cuts_compute_the_graph(name: str, parse_ir: ParseIR) -> None:
    text = (ROOT / f"{name}.mlir").read_text()
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    bound(graph, {symbol: 3 + n % 4 for n, symbol in enumerate(graph.symbol_names)})
    inputs = random_inputs(graph)
    expected = execute_graph(graph, inputs)
    for pieces in cuts_of(graph):
        plan = compose([scheduled_somehow(piece) for piece in pieces])
        assert len(kernels_of(plan)) == len(pieces)
        found = execute_plan(plan, inputs, order="random")
        for result, array in zip(found, expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-9, atol=1e-12)


def norm_plan(parse_ir: ParseIR, sizes: dict[str, int]) -> tuple[GraphOp, PlanOp]:
    """RMSNorm and MatMul: the root of each row, then the product divided by it."""
    text = (ROOT / "examples/rmsnorm_matmul_scaled.mlir").read_text()
    graph = graph_in(parse_ir, text, sizes)
    statistic, product = pieces_of(first_cut(graph), "norm")
    plans = [
        scheduled(statistic, {"M": 16}, {"K": 64}),
        scheduled(product, {"M": 128, "N": 64}, {"K": 32}),
    ]
    # The order does not matter, and the plans stay as they are.
    texts = [str(plan) for plan in plans]
    composed = compose(plans[::-1])
    assert [str(plan) for plan in plans] == texts
    return graph, composed


def test_kernels_tile_a_dim_differently(parse_ir: ParseIR) -> None:
    graph, plan = norm_plan(parse_ir, {"M": 150, "K": 100, "N": 70})
    require_equal(graph, plan)
    assert plan.symbol_names == ["M", "K", "N", "BM", "BK", "BM_2", "BN", "BK_2"]
    binding = plan.facts.binding
    assert [binding[name] for name in plan.symbol_names] == [
        *(150, 100, 70),
        *(16, 64),
        *(128, 64, 32),
    ]
    first, second = kernels_of(plan)
    assert [str(range_.hi) for range_ in first.ranges] == ["M ceildiv BM"]
    assert [str(range_.hi) for range_ in second.ranges] == [
        "M ceildiv BM_2",
        "N ceildiv BN",
    ]


def test_a_composed_plan_can_be_a_piece_itself(parse_ir: ParseIR) -> None:
    sizes = {"M": 40, "K": 50, "N": 30, "O": 20}
    text = (ROOT / "examples/gated_mlp.mlir").read_text()
    graph = graph_in(parse_ir, text, sizes)
    hidden, output = pieces_of(first_cut(graph), "mlp")
    kernel = {KERNEL: hidden.attributes[KERNEL]}
    found = first_cut(hidden)
    inner = cut(hidden, found.steps, "hidden", whole=kernel)
    plans = [scheduled(piece, {"M": 16, "N": 16}, {"K": 32}) for piece in inner]
    nested = compose(plans)
    assert len(kernels_of(nested)) == 2
    outer = scheduled(output, {"M": 32, "O": 16}, {"N": 16})
    plan = compose([nested, outer])
    assert len(kernels_of(plan)) == 3
    require_equal(graph, plan)


@pytest.mark.parametrize("parts", [{}, {"s": 1}, {"s": 2}], ids=["all", "one", "two"])
@pytest.mark.parametrize("safe", [True, False], ids=["safe", "plain"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"H": 2, "M": 16, "L": 512, "D": 32, "s": 4},
        {"H": 1, "M": 70, "L": 450, "D": 24, "s": 3},
    ],
    ids=["whole", "tails"],
)
def test_split_and_combine(
    parts: Tiles, safe: bool, sizes: dict[str, int], parse_ir: ParseIR
) -> None:
    graph = graph_in(parse_ir, FIG5B, sizes)
    plan = split_plan(graph, parts, safe)
    # A safe one passes on a reference for each part, too.
    first, _ = kernels_of(plan)
    assert len(first.outputs) == (3 if safe else 2)
    require_equal(graph, plan)


def split_plan(graph: GraphOp, parts: Tiles, safe: bool) -> PlanOp:
    """Fig. 5b in two kernels; the second one adds up `parts` at once."""
    module = ModuleOp([graph.clone()])
    if safe:
        StabilizeExpPass().apply(Context(), module)
    PartitionSplitPass().apply(Context(), module)
    split, combine = (cast(GraphOp, op) for op in module.ops)
    return compose(
        [
            scheduled(split, {"s": 1, "H": 1, "M": 64}, {"L": 64}),
            scheduled(combine, {"H": 1, "M": 16}, parts),
        ]
    )


def emitted(plan: PlanOp, file: Path) -> GeneratedModule:
    PlanMemoryPass().apply(Context(), ModuleOp([plan]))
    file.write_text(emit_module(plan))
    return load_generated(file)


def test_what_is_passed_on_are_temporaries(parse_ir: ParseIR, tmp_path: Path) -> None:
    sizes = {"H": 32, "M": 64, "L": 8192, "D": 128, "s": 8}
    plan = split_plan(graph_in(parse_ir, FIG5B, sizes), {"s": 1}, safe=True)
    module = emitted(plan, tmp_path / "fig5b.py")
    parts, products = (8, 32, 64, 1), (8, 32, 64, 128)
    shapes = [each.shape for each in module.plan.temporaries]
    assert shapes == [parts, products, parts]
    assert {each.dtype for each in module.plan.temporaries} == {"float32"}
    first, second = module.plan.kernels
    names = [each.name for each in module.plan.temporaries]
    assert [arg.name for arg in first.args][-3:] == names
    assert [arg.name for arg in second.args][:3] == names


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_two_kernels_lower_to_legal_cubins(parse_ir: ParseIR, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    _, plan = norm_plan(parse_ir, {"M": 4096, "K": 4096, "N": 6144})
    module = emitted(plan, tmp_path / "norm.py")
    built = build(module, H200.arch, tmp_path / "build")
    assert built.legality(H200) == []
    statistic, product = (kernel.reports[0] for kernel in built.kernels)
    assert product.instructions["wgmma"] > 0
    for report in (statistic, product):
        assert (report.spill_store_bytes, report.spill_load_bytes) == (0, 0)


def test_rows_and_columns_are_those_before_heads_are_joined(parse_ir: ParseIR) -> None:
    text = (ROOT / "test/graphs/attention_projection.mlir").read_text()
    sizes = {"H": 32, "M": 4096, "L": 4096, "D": 128, "N": 4096}
    graph = graph_in(parse_ir, text, sizes)
    attention, _ = pieces_of(first_cut(graph), "attention")
    (type_,) = attention.output_types
    assert [str(dim) for dim in type_.dims] == ["M", "H", "D"]
    uses = DimUses(attention).uses
    assert (uses["H"].is_batch, uses["H"].is_output) == (True, False)
    assert (uses["M"].is_batch, uses["M"].is_output) == (False, True)
    assert uses["D"].is_last
