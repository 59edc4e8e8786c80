"""Kernels of the form "persistent" on a GPU: what they compute, tails included."""

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from torch import Tensor  # noqa: E402
from xdsl.context import Context  # noqa: E402
from xdsl.dialects.builtin import Builtin  # noqa: E402
from xdsl.parser import Parser  # noqa: E402

from cleave.dialects.algebra import Algebra  # noqa: E402
from cleave.dialects.itgraph import ItGraph  # noqa: E402
from cleave.dialects.itgraph.plan import PlanOp  # noqa: E402
from cleave.lowering.check import check_on_device, random_inputs  # noqa: E402
from cleave.lowering.cuda import build  # noqa: E402
from cleave.lowering.generated import load_generated  # noqa: E402
from cleave.lowering.hardware import current_hardware  # noqa: E402
from cleave.lowering.runtime import load_compiled  # noqa: E402
from cleave.lowering.tilelang.module import emit_module  # noqa: E402
from cleave.passes.insert_casts import InsertCastsPass  # noqa: E402
from cleave.passes.plan_memory import PlanMemoryPass  # noqa: E402
from cleave.passes.schedule_blocks import ScheduleBlocksPass  # noqa: E402
from cleave.passes.schedule_reductions import ScheduleReductionsPass  # noqa: E402

if "wgmma" not in current_hardware().instructions:
    pytest.skip("no wgmma", allow_module_level=True)

EXAMPLES = Path(__file__).parents[2] / "examples"
DEVICE = torch.device("cuda", torch.cuda.current_device())


def product(x: Tensor, w: Tensor) -> Tensor:
    return x @ w


def gated(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    return torch.nn.functional.silu(x @ w1) * (x @ w2)


def normed(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w) / (x.square().mean(1, keepdim=True) + 1e-6).sqrt()


@pytest.mark.parametrize(
    "sizes",
    [
        "M = 4096, K = 4096, N = 4096",
        "M = 1000, K = 344, N = 4232",  # clipped in every dim
        "M = 100, K = 72, N = 200",  # one tile, two steps
        "M = 3000, K = 128, N = 3000",  # many tiles, fewer steps than stages
    ],
)
@pytest.mark.parametrize(
    ("name", "tile", "stages", "reference"),
    [
        ("matmul", "M=128 N=256", 4, product),
        ("matmul", "M=64 N=256", 4, product),
        ("swiglu", "M=128 N=128", 4, gated),
        ("rmsnorm_matmul_scaled", "M=128 N=256", 3, normed),
    ],
)
def test_persistent_kernels_are_right(
    name: str,
    tile: str,
    stages: int,
    reference: Callable[..., Tensor],
    sizes: str,
    tmp_path: Path,
) -> None:
    ctx = Context()
    for dialect in (Builtin, Algebra, ItGraph):
        ctx.load_dialect(dialect)
    text = (EXAMPLES / f"{name}.mlir").read_text()
    head, _, body = text.partition(" where [")
    module = Parser(ctx, f"{head} where [{sizes}]{body[body.index(']') + 1 :]}")
    program = module.parse_module()
    for pass_ in (
        InsertCastsPass(),
        ScheduleBlocksPass(tile=tile),
        ScheduleReductionsPass(tile="K=64"),
        PlanMemoryPass(threads=256, stages=stages, swizzle=8, form="persistent"),
    ):
        pass_.apply(ctx, program)
    (plan,) = program.ops
    assert isinstance(plan, PlanOp)
    file = tmp_path / "module.py"
    file.write_text(emit_module(plan))
    built = build(load_generated(file), current_hardware().arch, tmp_path / "built")
    assert built.legality(current_hardware()) == []
    compiled = load_compiled(built)
    inputs = random_inputs(compiled.plan, DEVICE, seed=0)
    (check,) = check_on_device(compiled, reference, inputs)
    assert check.reasons(1e-3) == []
