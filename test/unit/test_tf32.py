"""Products of f32 tensors rounded to tf32: for which of them there is a wgmma."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search.compiling import symbolized
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.work import product_clocks
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.scheduling.structures import (
    LoopStructure,
    kernels_of,
    planned,
    schedule,
)
from cleave.tools.graph_file import parse_graph

H200 = load_hardware("h200")
CleaveOpt = Callable[..., CompletedProcess[str]]

ROWS = """
algebra.graph @product [M, K, N] where [M = 512, K = 1024, N = 512]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[N, K], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w transpose_rhs precision tf32
  algebra.return %o
}"""
COLUMNS = ROWS.replace("[N, K]", "[K, N]").replace("transpose_rhs ", "")
ALSO_READ = ROWS.replace(
    "  algebra.return %o",
    """  %l = algebra.reduce_sum %x dim 1
  %n = algebra.div %o, %l
  algebra.return %n""",
)


@pytest.mark.parametrize(
    ("text", "takes_wgmma"), [(ROWS, True), (COLUMNS, False), (ALSO_READ, False)]
)
def test_tilelang_takes_wgmma_for_rows_that_nothing_else_reads(
    cleave_opt: CleaveOpt, tmp_path: Path, text: str, takes_wgmma: bool
) -> None:
    pytest.importorskip("tilelang")
    from cleave.lowering.cuda import lower

    emitted = cleave_opt(
        text,
        "-p",
        'insert-casts,schedule-blocks{tile="M=64 N=32"},'
        'schedule-reductions{tile="K=32"},plan-memory{specialization=single-loop}',
        "-t",
        "tilelang",
    )
    assert emitted.returncode == 0, emitted.stderr
    file = tmp_path / "kernel.py"
    file.write_text(emitted.stdout)
    module = load_generated(file)
    assert ("wgmma" in module.plan.kernels[0].requires) == takes_wgmma
    # What threads read themselves is read before TMA loads the next tile.
    assert ("reads_done(tw" in module.text) != takes_wgmma
    (kernel,) = lower(module, H200.arch)
    assert ("kTensorFloat32" in kernel.cuda and "wgmma_ss<" in kernel.cuda) == (
        takes_wgmma
    )


def test_a_product_without_wgmma_takes_longer() -> None:
    def clocks(text: str) -> float:
        graph = symbolized(parse_graph(text.encode(), "text"))
        structure = LoopStructure({"M": 64, "N": 32}, {"K": 32})
        plan = planned(schedule(graph, structure).plan, PlanMemoryPass())
        (kernel,) = kernels_of(plan)
        at = Evaluation(kernel_forms(kernel), {"": np.zeros(1, np.int64)})
        (product,) = at.forms.products
        one = np.ones((1, 1))
        return product_clocks(product, at, one, False, H200).item()

    assert clocks(COLUMNS) == 2 * clocks(ROWS)
