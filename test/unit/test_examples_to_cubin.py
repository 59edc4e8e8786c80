"""Every example, scheduled with stated tile sizes, down to legal machine code."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.cuda import build
from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.toolchain import find_nvcc
from cleave.passes.insert_casts import insert_casts
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_reductions import schedule_reductions

EXAMPLES = Path(__file__).parents[2] / "examples"
H200 = load_hardware("h200")


@dataclass(frozen=True)
class Case:
    name: str
    blocks: dict[str, int | None]
    reductions: dict[str, int | None]
    memory: PlanMemoryPass


PLAIN = PlanMemoryPass()
GEMM = PlanMemoryPass(stages=3, swizzle=10)
CASES = [
    Case("matmul", {"M": 128, "N": 256}, {"K": 64}, GEMM),
    Case("matmul_matmul", {"H": 1, "M": 128}, {"L": 128}, PLAIN),
    Case("matmul_rowsum", {"M": 128}, {"N": 128}, PLAIN),
    Case("swiglu", {"M": 128, "N": 128}, {"K": 64}, GEMM),
    Case("rmsnorm_matmul", {"M": 128, "N": 128}, {"K": 64}, PLAIN),
    Case("rmsnorm_matmul_scaled", {"M": 128, "N": 256}, {"K": 64}, GEMM),
    Case("attention_fig5a", {"H": 1, "M": 128}, {"L": 128}, PLAIN),
    Case("attention_softmax", {"H": 1, "M": 128}, {"L": 64}, PLAIN),
    Case("mha", {"H": 1, "M": 128}, {"L": 64}, PLAIN),
    Case("mqa", {"H": 1, "M": 128}, {"L": 64}, PLAIN),
    Case("gqa", {"H": 1, "G": 1, "M": 128}, {"L": 64}, PLAIN),
    Case("mla_prefill", {"H": 1, "M": 128}, {"L": 64}, PLAIN),
    # All of its 512 columns, twice on chip, would be too much SMEM.
    Case(
        "mla_decode",
        {"B": 1, "H": 64, "C": 256},
        {"L": 32},
        PlanMemoryPass(threads=256, stages=1),
    ),
]


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_example_lowers_to_a_legal_cubin(
    case: Case, parse_ir: Callable[[str], ModuleOp], tmp_path: Path
) -> None:
    pytest.importorskip("tilelang")
    module = parse_ir((EXAMPLES / f"{case.name}.mlir").read_text())
    graph = cast(GraphOp, module.body.block.first_op)
    insert_casts(graph)
    plan = schedule_blocks(graph, case.blocks)
    plan = schedule_reductions(plan, case.reductions)
    case.memory.apply(Context(), ModuleOp([plan]))
    file = tmp_path / "kernel.py"
    file.write_text(emit_module(plan))

    built = build(load_generated(file), H200.arch, tmp_path / "build")
    assert built.legality(H200) == []
    (kernel,) = built.kernels
    for report in kernel.reports:
        assert (report.spill_store_bytes, report.spill_load_bytes) == (0, 0)
        assert report.instructions["wgmma"] > 0
        assert report.instructions["tma"] > 0
        assert report.instructions["mma_sync"] == 0
