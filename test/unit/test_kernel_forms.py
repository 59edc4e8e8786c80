"""Kernel forms: which kernels fit, what they take, and that they compile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.dims import substitute
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.cuda import build
from cleave.lowering.generated import load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.tilelang.forms import form_named
from cleave.lowering.tilelang.forms.persistent import PersistentForm
from cleave.lowering.tilelang.forms.persistent.resources import (
    resources_of,
    staging_columns,
)
from cleave.lowering.tilelang.forms.persistent.structure import structure_of
from cleave.lowering.tilelang.forms.persistent.warpgroups import (
    available_registers,
    raised_registers,
)
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.tilelang.text import EmissionError
from cleave.lowering.toolchain import find_nvcc
from cleave.passes.insert_casts import InsertCastsPass
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import ScheduleBlocksPass
from cleave.passes.schedule_reductions import ScheduleReductionsPass

EXAMPLES = Path(__file__).parents[2] / "examples"
H200 = load_hardware("h200")
A100 = load_hardware("a100")

PERSISTENT = PersistentForm()

Planned = Callable[..., PlanOp]


@pytest.fixture
def planned(parse_ir: Callable[[str], ModuleOp]) -> Planned:
    """`planned(text, tile, reduce, ...)` is the plan of a graph, with options."""

    def plan(text: str, tile: str, reduce: str, **options: Any) -> PlanOp:
        module = parse_ir(text)
        defaults: dict[str, Any] = {"stages": 4, "threads": 256}
        for pass_ in (
            InsertCastsPass(),
            ScheduleBlocksPass(tile=tile),
            ScheduleReductionsPass(tile=reduce),
            PlanMemoryPass(**(defaults | options)),
        ):
            pass_.apply(Context(), module)
            module.verify()
        (plan,) = module.ops
        assert isinstance(plan, PlanOp)
        return plan

    return plan


def kernel_of(plan: PlanOp) -> KernelOp:
    (kernel,) = (op for op in plan.body.block.ops if isinstance(op, KernelOp))
    return kernel


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.mlir").read_text()


def matmul(m: int = 4096, k: int = 4096, n: int = 4096, body: str = "") -> str:
    body = body or "%o = algebra.matmul %x, %w"
    return f"""
        algebra.graph @matmul [M, K, N] where [M = {m}, K = {k}, N = {n}]
            (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
            -> (!algebra.tensor<[M, N], f16>) {{
          {body}
          algebra.return %o
        }}"""


def reason(plan: PlanOp) -> str | None:
    return PERSISTENT.fits(kernel_of(plan), H200)


# Which kernels fit


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        ("i_K * BK + 8", None),
        (
            "i_K * BK + 4",
            "tensor %x: bulk copies begin at multiples of 16 bytes, and a tile begins "
            "at element 64 * i_K + 4 of 2 bytes",
        ),
    ],
)
def test_tiles_of_bulk_copies_begin_at_multiples_of_16_bytes(
    planned: Planned, parse_ir: Callable[[str], ModuleOp], begin: str, said: str | None
) -> None:
    plan = planned(matmul(), "M=128 N=256", "K=64", form="persistent")
    text = str(plan)
    assert text.count("[0, i_K * BK]") == 1
    (moved,) = parse_ir(text.replace("[0, i_K * BK]", f"[0, {begin}]")).ops
    assert isinstance(moved, PlanOp)
    assert reason(moved) == said


@pytest.mark.parametrize(
    ("tile", "options"),
    [
        ("M=128 N=256", {}),
        ("M=256 N=128", {}),
        ("M=192 N=128", {"threads": 384}),
        ("M=64 N=128", {"threads": 128}),
        ("M=64 N=256", {}),
    ],
)
def test_tiles_that_fit(planned: Planned, tile: str, options: dict[str, Any]) -> None:
    plan = planned(matmul(), tile, "K=64", form="persistent", **options)
    assert reason(plan) is None


@pytest.mark.parametrize(
    ("text", "tile", "reduce", "options", "said"),
    [
        (
            matmul(k=341),
            "M=128 N=128",
            "K=64",
            {},
            "tensor %x: bulk copies take rows of a multiple of 16 bytes, and 341 "
            "elements of 2 bytes are 682",
        ),
        (
            matmul(),
            "M=96 N=128",
            "K=64",
            {"warps": "rows"},
            "BM is 96; 2 warpgroups that divide rows take rows in multiples of 128",
        ),
        (
            matmul(),
            "M=64 N=48",
            "K=64",
            {"warps": "columns"},
            "BN is 48; 2 warpgroups that divide columns take columns in multiples "
            "of 32",
        ),
        (
            matmul(),
            "M=256 N=256",
            "K=64",
            {"stages": 2},
            "tiles take 256 registers of each of 256 threads, which have 240 and need "
            "32 for the rest",
        ),
        (
            matmul(),
            "M=192 N=256",
            "K=64",
            {"threads": 384},
            "256 columns of a warpgroup are too many for one wgmma at 128 registers",
        ),
        (
            matmul(),
            "M=128 N=256",
            "K=64",
            {"stages": 5},
            "5 stages take 263168 bytes of SMEM, a threadblock has 232448",
        ),
        (matmul(), "M=128 N=128", "K=64", {"stages": 1}, "one stage"),
        (matmul(k=64), "M=128 N=128", "", {}, "it has 0 loops"),
        (
            example("attention_fig5a"),
            "H=1 M=128",
            "L=64",
            {"stages": 2},
            "operand 0 is loaded before, not loaded in its loop",
        ),
        (
            matmul(body="%y = algebra.matmul %x, %w\n%o = algebra.exp %y"),
            "M=512 N=128",
            "K=64",
            {"threads": 512},
            "tensor %x: a tile of 512 elements, and bulk copies take 256 along one dim",
        ),
        (
            matmul(body="%e = algebra.exp %x\n%o = algebra.matmul %e, %w"),
            "M=128 N=128",
            "K=64",
            {},
            "operand 0 is computed, not loaded in its loop",
        ),
        (
            example("matmul_rowsum").replace("[M = 4096, K = 64", "[M = 4096, K = 128"),
            "M=128 N=4096",
            "K=64",
            {},
            "'algebra.reduce_sum' op: the epilogue is for elementwise operators",
        ),
    ],
)
def test_kernels_that_do_not_fit(
    planned: Planned,
    text: str,
    tile: str,
    reduce: str,
    options: dict[str, Any],
    said: str,
) -> None:
    with pytest.raises(PassFailedException, match="a kernel does not fit") as error:
        planned(text, tile, reduce, form="persistent", **options)
    assert said in str(error.value)


def test_another_gpu_has_no_bulk_copies(planned: Planned) -> None:
    kernel = kernel_of(planned(matmul(), "M=128 N=256", "K=64"))
    assert form_named("persistent").fits(kernel, A100) == "NVIDIA A100 has no wgmma"


def test_an_unknown_form_is_named(planned: Planned) -> None:
    with pytest.raises(PassFailedException, match="no kernel form 'fast'; there are"):
        planned(matmul(), "M=128 N=256", "K=64", form="fast")
    plan = planned(matmul(), "M=128 N=256", "K=64")
    kernel_of(plan).form = StringAttr("fast")
    with pytest.raises(EmissionError, match="no kernel form 'fast'"):
        emit_module(plan)


# What they take


def test_resources_are_closed_forms_over_tile_sizes(planned: Planned) -> None:
    plan = planned(example("swiglu"), "M=128 N=128", "K=64", form="persistent")
    structure = structure_of(kernel_of(plan))
    # Without facts every size is a symbol.
    resources = resources_of(structure, Facts())
    tiles = {"BM": 128, "BN": 128, "BK": 64, "M": 4096, "N": 14336, "K": 4096}
    staging = 128 * 64 * 2
    smem = 4 * (128 * 64 + 2 * 64 * 128) * 2 + 1024 + staging
    assert substitute(resources.smem_bytes(4), tiles) == smem
    assert substitute(resources.registers(256), tiles) == 2 * 128 * 128 // 256


def test_tiles_beside_the_loop_take_smem_and_statistics_registers(
    planned: Planned,
) -> None:
    text = example("rmsnorm_matmul_scaled")
    plan = planned(text, "M=128 N=128", "K=64", form="persistent")
    resources = PERSISTENT.resources(kernel_of(plan))
    # A row vector goes through SMEM; the squares of a tile lie in registers.
    assert resources.beside_bytes == 1024 + 1024
    assert resources.registers(256) == (128 * 128 + 128 * 64) // 256


@pytest.mark.parametrize(
    ("columns", "available", "divides_rows", "width"),
    [
        (256, 128 * 256 * 2, True, 256),
        (256, 128 * 256 * 2 - 1, True, 128),
        (192, 128 * 192 * 2 - 1, True, 64),
        (256, 0, True, 64),  # never less than a row of the swizzle
        (96, 0, True, 96),  # which does not divide this
        (256, 0, False, 256),
    ],
)
def test_outputs_are_staged_in_the_largest_parts_that_fit(
    columns: int, available: int, divides_rows: bool, width: int
) -> None:
    assert staging_columns(columns, 128, 2, divides_rows, available) == width


def test_consumers_get_what_the_producer_gives_up() -> None:
    assert [raised_registers(n, H200) for n in (1, 2, 3)] == [None, 240, 160]
    assert available_registers(1, H200) == 248


# That they compile


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
@pytest.mark.parametrize(
    ("name", "tile", "stages"),
    [
        ("matmul", "M=128 N=256", 4),
        ("swiglu", "M=128 N=128", 4),
        ("rmsnorm_matmul_scaled", "M=128 N=256", 3),
    ],
)
def test_persistent_kernels_are_legal(
    planned: Planned, tmp_path: Path, name: str, tile: str, stages: int
) -> None:
    pytest.importorskip("tilelang")
    plan = planned(
        example(name), tile, "K=64", form="persistent", stages=stages, swizzle=8
    )
    file = tmp_path / "module.py"
    file.write_text(emit_module(plan))
    built = build(load_generated(file), H200.arch, tmp_path / "built")
    assert built.legality(H200) == []
    (report,) = built.kernels[0].reports
    assert (report.threads, report.raised_registers) == (384, 240)
    assert report.instructions["tma_store"] > 0
    resources = PERSISTENT.resources(kernel_of(plan))
    least = resources.smem_bytes(stages)
    assert isinstance(least, int)
    assert least <= report.smem_bytes <= H200.smem_bytes_per_block
