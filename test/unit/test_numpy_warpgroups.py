"""
Kernels that divide their warps by hand, executed in NumPy: the numbers that they
compute, in whichever order their warps run, and the mistakes that this would notice.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.generated import load_generated
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_modules import execute_module
from cleave.lowering.numpy_warpgroups import Barrier, Priority
from cleave.lowering.tilelang.module import emit_module
from cleave.passes.insert_casts import InsertCastsPass
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import ScheduleBlocksPass
from cleave.passes.schedule_reductions import ScheduleReductionsPass

Reference = Callable[..., list[Any]]


@dataclass(frozen=True)
class Case:
    """A graph `body` over tensors, its tiles, and what it means."""

    tensors: str
    results: str
    body: str
    reference: Reference
    tile: str = "M=128 N=64"
    threads: int = 256
    swizzle: int = 0
    sizes: str = "M = 300, K = 200, N = 328"

    def graph(self) -> str:
        symbols = ", ".join(fact.split()[0] for fact in self.sizes.split(", "))
        results = ", ".join(f"!algebra.tensor<{r}>" for r in self.results.split("; "))
        tensors = ", ".join(
            f"%{name}: !algebra.tensor<{type_}>"
            for name, type_ in (t.split(": ") for t in self.tensors.split("; "))
        )
        return (
            f"algebra.graph @g [{symbols}] where [{self.sizes}]\n"
            f"    ({tensors}) -> ({results}) {{\n{self.body}\n}}"
        )


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


MATMUL = "%o = algebra.matmul %x, %w\nalgebra.return %o"
XW = "x: [M, K], f16; w: [K, N], f16"
ROW_SCALED = """
%y = algebra.matmul %x, %w
%scaled = algebra.mul %y, %scale
%shifted = algebra.add %scaled, %bias
%o = algebra.add %shifted, %residual
algebra.return %o, %shifted"""
NORMED = """
%count = algebra.constant K : !algebra.tensor<[], f32>
%squares = algebra.square %x
%sum = algebra.reduce_sum %squares dim 1
%mean = algebra.div %sum, %count
%rms = algebra.sqrt %mean
%y = algebra.matmul %x, %w
%o = algebra.div %y, %rms
algebra.return %o"""
GATED = """
%a = algebra.matmul %x, %u
%b = algebra.matmul %x, %w
%g = algebra.silu %a
%o = algebra.mul %g, %b
algebra.return %o"""


def product(x: Any, w: Any) -> list[Any]:
    return [x @ w]


def transposed_product(x: Any, w: Any) -> list[Any]:
    return [x.T @ w.T]


def gated(x: Any, u: Any, w: Any) -> list[Any]:
    return [silu(x @ u) * (x @ w)]


def row_scaled(x: Any, w: Any, scale: Any, bias: Any, residual: Any) -> list[Any]:
    shifted = (x @ w) * scale + bias
    return [shifted + residual, shifted]


def normed(x: Any, w: Any) -> list[Any]:
    return [(x @ w) / np.sqrt((x * x).mean(1, keepdims=True))]


CASES = {
    "matmul": Case(XW, "[M, N], f16", MATMUL, product),
    "swizzle": Case(XW, "[M, N], f16", MATMUL, product, "M=128 N=64", swizzle=2),
    "three consumers": Case(XW, "[M, N], f16", MATMUL, product, "M=192 N=64", 384),
    "columns": Case(XW, "[M, N], f16", MATMUL, product, "M=64 N=128"),
    "parts": Case(XW, "[M, N], f16", MATMUL, product, "M=128 N=256"),
    "f32": Case(XW, "[M, N], f32", MATMUL, product),
    "two steps": Case(
        XW, "[M, N], f16", MATMUL, product, sizes="M = 300, K = 72, N = 328"
    ),
    "batch": Case(
        "x: [B, M, K], f16; w: [B, K, N], f16",
        "[B, M, N], f16",
        MATMUL,
        product,
        "B=1 M=128 N=64",
        swizzle=2,
        sizes="B = 3, M = 200, K = 136, N = 136",
    ),
    "transposed": Case(
        "x: [K, M], f16; w: [N, K], f16",
        "[M, N], f16",
        MATMUL.replace("%w", "%w transpose_lhs transpose_rhs"),
        transposed_product,
        sizes="M = 296, K = 200, N = 328",
    ),
    "gated": Case(
        "x: [M, K], f16; u: [K, N], f16; w: [K, N], f16",
        "[M, N], f16",
        GATED,
        gated,
    ),
    "row scaled": Case(
        f"{XW}; scale: [M, 1], f32; bias: [1, N], f16; residual: [M, N], f16",
        "[M, N], f16; [M, N], f32",
        ROW_SCALED,
        row_scaled,
        "M=128 N=256",
        swizzle=8,
    ),
    "normed": Case(XW, "[M, N], f16", NORMED, normed, "M=128 N=128"),
}


@pytest.fixture(scope="module")
def emitted(parse_ir: Callable[[str], ModuleOp]) -> Callable[[Case], str]:
    """The module of a case, for a GPU of three multiprocessors: several tiles each."""

    @cache
    def emit(case: Case) -> str:
        module = parse_ir(case.graph())
        for pass_ in (
            InsertCastsPass(),
            ScheduleBlocksPass(tile=case.tile),
            ScheduleReductionsPass(tile="K=64"),
            PlanMemoryPass(
                case.threads, stages=3, swizzle=case.swizzle, form="persistent"
            ),
        ):
            pass_.apply(Context(), module)
        (plan,) = module.ops
        assert isinstance(plan, PlanOp)
        text = emit_module(plan)
        assert text.count("T.min(132, tiles)") == 1
        return text.replace("T.min(132, tiles)", "T.min(3, tiles)")

    return emit


def error(text: str, case: Case, priority: Priority, folder: Path) -> float:
    """The largest error of any result, relative to its largest element."""
    file = folder / "kernel.py"
    file.write_text(text)
    module = load_generated(file)
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal([int(dim) for dim in spec.shape]).astype(spec.dtype)
        for spec in module.plan.args
    ]
    found = execute_module(module, inputs, {}, priority)
    expected = case.reference(*(array.astype(np.float64) for array in inputs))
    return max(
        float(np.max(np.abs(array - exact)) / np.max(np.abs(exact)))
        for array, exact in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("priority", ["loads", "computation"])
@pytest.mark.parametrize("name", CASES)
def test_persistent_kernels_compute_their_graph(
    name: str,
    priority: Priority,
    emitted: Callable[[Case], str],
    tmp_path: Path,
) -> None:
    case = CASES[name]
    assert error(emitted(case), case, priority, tmp_path) < 1e-3


MISTAKES = {
    "stage released before it was read": (
        "empty_1[(step - 1) % stages]",
        "empty_1[stage]",
    ),
    "matmul not waited for": ("T.wait_wgmma(0)", "T.wait_wgmma(1)"),
    "wrong parity of loads": (
        "full_1[stage], step // stages % 2)",
        "full_1[stage], 1)",
    ),
    "stage overwritten": (
        "stages % 2 ^ 1)\n            load",
        "stages % 2)\n            load",
    ),
    "loads not waited for": ("T.barrier_wait(full_1[stage]", "nothing(full_1[stage]"),
    "store not waited for": ("        T.tma_store_wait(0)\n\n", "\n"),
    "staging overwritten": (
        "            T.tma_store_wait(0)\n            T.sync",
        "            T.sync",
    ),
    "epilogue's loads not waited for": (
        "T.barrier_wait(full_0[0], wave",
        "nothing(full_0[0], wave",
    ),
    "epilogue's loads too early": ("T.barrier_wait(empty_0[0]", "nothing(empty_0[0]"),
    "steps counted anew in each tile": ("wave * steps, full_1", "0, full_1"),
    "accumulators kept": ("clear_accum=i_K == 0", "clear_accum=False"),
    "tile left out": ("number < tiles", "number < tiles - 1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_show_in_some_order(
    mistake: str, emitted: Callable[[Case], str], tmp_path: Path
) -> None:
    # As many steps as stages: nothing but barriers keeps loads from running ahead.
    case = replace(CASES["row scaled"], sizes="M = 300, K = 136, N = 328")
    text = emitted(case)
    old, new = MISTAKES[mistake]
    assert old in text
    changed = text.replace(old, new) + "\n\ndef nothing(*args): ...\n"

    def is_wrong(priority: Priority) -> bool:
        try:
            return not error(changed, case, priority, tmp_path) < 1e-3
        except ExecutionError:
            return True

    assert is_wrong("loads") or is_wrong("computation")


def test_a_barrier_counts_threads_and_phases() -> None:
    barrier = Barrier(256)
    assert (barrier.has_ended(1), barrier.has_ended(0)) == (True, False)
    barrier.arrive(128)
    assert not barrier.has_ended(0)
    barrier.arrive(128)
    assert (barrier.has_ended(1), barrier.has_ended(0)) == (False, True)
    with pytest.raises(ExecutionError, match="more than 256 threads arrive"):
        barrier.arrive(384)


def test_warps_that_wait_for_ever_are_an_error(
    emitted: Callable[[Case], str], tmp_path: Path
) -> None:
    case = CASES["matmul"]
    text = emitted(case).replace("T.barrier_arrive(full_1[stage])", "")
    with pytest.raises(ExecutionError, match="every part of a threadblock waits"):
        error(text, case, "loads", tmp_path)
