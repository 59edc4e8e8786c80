"""Plans with calls of a vendor's library: their IR, their text, and how they run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph import KernelOp, LibraryMatmul, PlanOp
from cleave.lowering.built_plan import BuiltPlan, load_built
from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.numpy_algebra import execute_graph
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.lowering.plan import KernelArg, LibraryCall, Plan, PlanError
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.call_libraries import library_plan
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partition_reductions import pieces_of
from cleave.passes.partitioning.composition import compose
from cleave.passes.partitioning.reduction_cuts import ReductionCuts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks

MLP = """
algebra.graph @mlp [B, M, K, N, O] where [B = 2, M = 3, K = 16, N = 24, O = 8]
    (%x: !algebra.tensor<[B, M, K], f16>, %w1: !algebra.tensor<[N, K], f16>,
     %w3: !algebra.tensor<[N, O], f16>)
    -> (!algebra.tensor<[B * M, O], f16>) {
  %gate = algebra.matmul %x, %w1 transpose_rhs
  %h = algebra.silu %gate
  %o = algebra.matmul %h, %w3
  %y = algebra.reshape %o to [B * M, O]
  algebra.return %y
}"""


@pytest.fixture
def graph(parse_ir: Callable[[str], ModuleOp]) -> GraphOp:
    return cast(GraphOp, parse_ir(MLP).body.block.first_op)


@pytest.fixture
def plan(graph: GraphOp) -> PlanOp:
    """A call of a library, an elementwise kernel, and another call."""
    first, middle, last = pieces_of(ReductionCuts(graph).unfused(), "mlp")
    calls = [library_plan(first), library_plan(last)]
    assert library_plan(middle) is None
    insert_casts(middle)
    module = ModuleOp([schedule_blocks(middle, {"N": 8})])
    PlanMemoryPass().apply(Context(), module)
    kernel = cast(PlanOp, module.body.block.first_op)
    return compose([cast(PlanOp, calls[0]), kernel, cast(PlanOp, calls[1])])


@pytest.fixture
def inputs() -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 16), (24, 16), (24, 8)]
    return [rng.standard_normal(s).astype(np.float16) for s in shapes]


def test_calls_stand_between_kernels(
    plan: PlanOp, graph: GraphOp, inputs: list[Any]
) -> None:
    launched = [
        type(op)
        for op in plan.body.block.ops
        if isinstance(op, KernelOp | LibraryMatmul)
    ]
    assert launched == [LibraryMatmul, KernelOp, LibraryMatmul]
    (expected,) = execute_graph(graph, inputs)
    (found,) = execute_plan(plan, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    insert_casts(graph)
    (rounded,) = execute_graph(graph, inputs, precision="rounded")
    (found,) = execute_plan(plan, inputs, precision="rounded")
    np.testing.assert_array_equal(found, rounded)


def test_modules_say_what_is_called(plan: PlanOp, tmp_path: Path) -> None:
    file = tmp_path / "mlp.py"
    file.write_text(emit_module(plan))
    module = load_generated(file)
    assert module.text.startswith('"""mlp: 1 kernel and 2 library calls, generated')
    first, kernel, last = module.plan.launches
    assert module.plan.kernels == (kernel,)
    assert first == LibraryCall(
        "matmul",
        (
            KernelArg("x", (6, 16)),
            KernelArg("w1", (24, 16)),
            KernelArg("gate", (6, 24)),
        ),
        ("rhs",),
    )
    assert last == LibraryCall(
        "matmul",
        (KernelArg("h", (6, 24)), KernelArg("w3", (24, 8)), KernelArg("o", (6, 8))),
        (),
    )
    assert module.plan.library_calls == (first, last)
    assert Plan.parse(module.plan.literal()) == module.plan


def test_a_plan_may_have_no_kernel_at_all(
    parse_ir: Callable[[str], ModuleOp], tmp_path: Path
) -> None:
    text = """
        algebra.graph @product [M, K] where [K = 8]
            (%x: !algebra.tensor<[M, K], f32>)
            -> (!algebra.tensor<[M, M], f32>) {
          %y = algebra.matmul %x, %x transpose_rhs
          algebra.return %y
        }"""
    graph = cast(GraphOp, parse_ir(text).body.block.first_op)
    file = tmp_path / "product.py"
    file.write_text(emit_module(cast(PlanOp, library_plan(graph))))
    assert "1 library call," in file.read_text()
    module = load_generated(file)
    assert module.functions() == {}
    assert module.plan.dynamic_dims == ("M",)
    built = BuiltPlan(tmp_path, module.plan, "sm_90a", {}, ())
    built.save()
    assert load_built(tmp_path) == built
    assert built.legality(load_hardware("h200")) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"library": "conv"}, "no library has conv"),
        ({"args": ["x", "y"]}, "takes two operands and a result, not 2"),
        ({"transposed": ["out"]}, "has operands lhs and rhs"),
        ({"requires": []}, "unknown key 'requires'"),
        ({"args": ["x", "z", "y"]}, "matmul takes z, no such tensor"),
        ({"args": ["x", {"name": "x", "shape": [5]}, "y"]}, "matmul's view of x has 5"),
    ],
)
def test_calls_that_cannot_be_made(entry: dict[str, Any], message: str) -> None:
    square: dict[str, Any] = {"shape": [4, 4], "dtype": "float32"}
    call: dict[str, Any] = {
        "library": "matmul",
        "args": ["x", "x", "y"],
        "transposed": [],
    }
    literal: dict[str, Any] = {
        "name": "square",
        "args": [{"name": "x", **square}],
        "results": [{"name": "y", **square}],
        "temporaries": [],
        "kernels": [call],
        "sizes": {},
    }
    Plan.parse(literal)
    call.update(entry)
    with pytest.raises(PlanError, match=message):
        Plan.parse(literal)


class TestOnTensors:
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
    @pytest.mark.parametrize("result", ["same", "float32"])
    @pytest.mark.parametrize("transposed", [(), ("lhs",), ("lhs", "rhs")])
    @pytest.mark.parametrize("stack", [(), (3,)], ids=["matrix", "stack"])
    def test_products(
        self, dtype: str, result: str, transposed: tuple[Any, ...], stack: Any
    ) -> None:
        torch = pytest.importorskip("torch")
        from cleave.lowering.library_calls import library_call

        lhs = torch.randn(*stack, 5, 7).to(getattr(torch, dtype))
        rhs = torch.randn(*stack, 7, 4).to(getattr(torch, dtype))
        kind = getattr(torch, dtype if result == "same" else result)
        out = torch.empty(*stack, 5, 4, dtype=kind)
        held = [
            tensor.mT.contiguous() if side in transposed else tensor
            for side, tensor in (("lhs", lhs), ("rhs", rhs))
        ]
        library_call(LibraryCall("matmul", (), transposed))(*held, out)
        expected = torch.matmul(lhs.double(), rhs.double())
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5}[dtype]
        assert torch.allclose(out.double(), expected, rtol=tolerance, atol=tolerance)

    def test_a_compiled_graph_makes_them_in_order(
        self, plan: PlanOp, inputs: list[Any], graph: GraphOp, tmp_path: Path
    ) -> None:
        torch = pytest.importorskip("torch")
        from cleave.lowering.library_calls import library_call
        from cleave.lowering.runtime import CompiledGraph

        file = tmp_path / "mlp.py"
        file.write_text(emit_module(plan))
        parsed = load_generated(file).plan

        def silu(gate: Any, h: Any) -> None:
            h.copy_(torch.nn.functional.silu(gate))

        launches = [
            library_call(launch) if isinstance(launch, LibraryCall) else silu
            for launch in parsed.launches
        ]
        compiled = CompiledGraph(parsed, launches, torch.device("cpu"))
        found: Any = compiled(*map(torch.from_numpy, inputs))
        (expected,) = execute_graph(graph, inputs)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-2, atol=1e-2)
