"""
Compiled graphs, checks and timing on a GPU: `pytest test/gpu`, in about half a minute.

The modules are small and hand-written; whether kernels are fast is for bench/.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from torch import Tensor  # noqa: E402

from cleave.lowering.built_plan import BuiltPlan  # noqa: E402
from cleave.lowering.check import check_on_device, random_inputs  # noqa: E402
from cleave.lowering.cuda import build  # noqa: E402
from cleave.lowering.generated import load_generated  # noqa: E402
from cleave.lowering.hardware import current_hardware  # noqa: E402
from cleave.lowering.runtime import CompiledGraph, load_compiled  # noqa: E402
from cleave.lowering.timing import time_alternating  # noqa: E402

GENERATED = Path(__file__).parents[1] / "generated"
DEVICE = torch.device("cuda", torch.cuda.current_device())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BuiltPlan]:
    plans: dict[str, BuiltPlan] = {}

    def get(name: str) -> BuiltPlan:
        if name not in plans:
            folder = tmp_path_factory.mktemp(name)
            module = load_generated(GENERATED / f"{name}.py")
            plans[name] = build(module, current_hardware().arch, folder)
        return plans[name]

    return get


@pytest.fixture
def matmul(built: Callable[[str], BuiltPlan]) -> CompiledGraph:
    return load_compiled(built("matmul"))


@pytest.fixture
def row_sums(built: Callable[[str], BuiltPlan]) -> CompiledGraph:
    return load_compiled(built("matmul_rowsum"))


def product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def sums(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).sum(1, keepdim=True)


def inputs(graph: CompiledGraph, seed: int = 0, **sizes: int) -> list[Tensor]:
    return random_inputs(graph.plan, DEVICE, seed=seed, sizes=sizes)


def test_a_matmul_is_right(matmul: CompiledGraph) -> None:
    for seed in (1, 2):
        (check,) = check_on_device(matmul, product, inputs(matmul, seed))
        assert check.reasons(1e-3) == []


@pytest.mark.parametrize("size", [1, 100, 128, 1000, 4096])
def test_two_kernels_with_a_dynamic_dim_are_right(
    row_sums: CompiledGraph, size: int
) -> None:
    (check,) = check_on_device(row_sums, sums, inputs(row_sums, M=size))
    assert check.reasons(1e-3) == []


def test_out_allocates_nothing(row_sums: CompiledGraph) -> None:
    x, w = inputs(row_sums, M=512)
    y = torch.empty(512, 1, device=DEVICE)
    row_sums(x, w, out=y)
    before = torch.cuda.memory_stats(DEVICE)["allocation.all.allocated"]
    for _ in range(3):
        row_sums(x, w, out=y)
    assert torch.cuda.memory_stats(DEVICE)["allocation.all.allocated"] == before


def test_a_call_can_be_captured(row_sums: CompiledGraph) -> None:
    x, w = inputs(row_sums, M=512)
    y = torch.empty(512, 1, device=DEVICE)
    row_sums(x, w, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        row_sums(x, w, out=y)
    for seed in (5, 6):
        x.copy_(inputs(row_sums, seed, M=512)[0])
        y.fill_(torch.nan)
        graph.replay()
        expected = sums(x.double(), w.double())
        torch.testing.assert_close(y.double(), expected, rtol=0, atol=0.5)


def test_kernels_run_on_the_current_stream(row_sums: CompiledGraph) -> None:
    """While the default stream is busy, a call on another one comes to its end."""
    x, w = inputs(row_sums, M=512)
    expected = row_sums(x, w)
    assert isinstance(expected, Tensor)
    y = torch.full((512, 1), torch.nan, device=DEVICE)
    own = torch.empty(row_sums.workspace_bytes(M=512), dtype=torch.uint8, device=DEVICE)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    torch.cuda._sleep(2_000_000_000)
    busy = torch.cuda.Event()
    busy.record()
    with torch.cuda.stream(side):
        row_sums(x, w, out=y, workspace=own)
    side.synchronize()
    assert not busy.query()
    torch.cuda.synchronize()
    assert torch.equal(y, expected)


def test_a_built_plan_runs_without_the_compiler(
    built: Callable[[str], BuiltPlan],
) -> None:
    """In another process, which never imports TileLang."""
    program = f"""
import sys, torch
from pathlib import Path
from cleave.lowering.built_plan import load_built
from cleave.lowering.runtime import load_compiled
compiled = load_compiled(load_built(Path({str(built("matmul").folder)!r})))
a = torch.randn(256, 384, device="cuda").half()
b = torch.randn(384, 512, device="cuda").half()
expected = a.double() @ b.double()
error = (compiled(a, b).double() - expected).norm() / expected.norm()
assert error < 1e-3, error
assert "tilelang" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_empty_kernel_takes_what_the_description_says() -> None:
    """4.8 us, and twice as much for two in a row is the sign of a host in the time."""

    def empty() -> None:
        torch.cuda._sleep(1)

    def two() -> None:
        empty()
        empty()

    hardware = current_hardware()
    times = time_alternating({"one": empty, "two": two})
    one, both = times["one"].median_ms * 1e-3, times["two"].median_ms * 1e-3
    assert one == pytest.approx(hardware.launch_seconds, rel=0.5)
    assert both - one == pytest.approx(hardware.next_launch_seconds, abs=2e-6)


def test_a_long_read_runs_at_the_speed_of_memory() -> None:
    source = torch.randn(32 * 2**20, device=DEVICE)
    largest = torch.empty((), device=DEVICE)
    timing = time_alternating({"read": lambda: torch.amax(source, 0, out=largest)})
    floor = current_hardware().floor_seconds(0, source.nbytes)
    assert 0.9 * floor < timing["read"].median_ms * 1e-3 < 2 * floor
    assert timing["read"].spread < 0.1
