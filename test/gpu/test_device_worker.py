"""
Candidates that really fault on a GPU, or never end: `pytest test/gpu`.

A kernel is right, writes outside of its result, traps, or waits for ever.
"""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from cleave.lowering.compilation.device import visible_device  # noqa: E402
from cleave.lowering.compilation.device_worker import (  # noqa: E402
    CandidateError,
    DeviceWorker,
)
from cleave.lowering.compile_workers import CompileJob, compile_all  # noqa: E402
from cleave.tools.graph_file import parse_graph  # noqa: E402

GRAPH = b"""
algebra.graph @double [M] where [M = 4096]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %o = algebra.add %x, %x
  algebra.return %o
}"""
MODULE = '''
import tilelang
import tilelang.language as T

PLAN = {
    "name": "double",
    "args": [{"name": "x", "shape": [4096], "dtype": "float32"}],
    "results": [{"name": "y", "shape": [4096], "dtype": "float32"}],
    "temporaries": [],
    "kernels": [
        {"function": "kernel_0", "args": ["x", "y"], "pass_configs": {}, "requires": []}
    ],
    "sizes": {},
}

SOURCE = """
__device__ __forceinline__ float right(float x) { return x + x; }
__device__ __forceinline__ float trap(float x) { asm volatile("trap;"); return x; }
__device__ __forceinline__ float stray(float x) {
  *(volatile float *)16 = x;
  return x;
}
__device__ __forceinline__ float wait(float x) {
  volatile int waits = 1;
  while (waits) __nanosleep(1000);
  return x;
}
"""


def kernel_0():
    @T.prim_func
    def double(x: T.Tensor((4096,), "float32"), y: T.Tensor((4096,), "float32")):
        with T.Kernel(32, threads=128) as i:
            T.import_source(SOURCE)
            for j in T.Parallel(128):
                y[i * 128 + j] = T.call_extern("float32", "{function}", x[i * 128 + j])

    return double
'''
FUNCTIONS = ("right", "trap", "wait", "stray")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of built plans by what their kernel does."""
    folder = tmp_path_factory.mktemp("builds")
    jobs: list[CompileJob] = []
    for name in FUNCTIONS:
        module = folder / f"{name}.py"
        module.write_text(MODULE.replace("{function}", name))
        arch = visible_device().hardware.arch
        jobs.append(CompileJob(name, module, arch, folder / name))
    outcomes = compile_all(jobs, workers=4)
    assert [outcome.reason for outcome in outcomes] == [None] * len(jobs)
    return {job.name: job.folder for job in jobs}


def test_a_kernel_that_faults_or_hangs_is_rejected(builds: dict[str, Path]) -> None:
    graph = parse_graph(GRAPH, "graph")
    reasons: dict[str, str] = {}
    with DeviceWorker(graph, visible_device(), run_seconds=20) as worker:
        for name in (*FUNCTIONS, "right"):
            try:
                check = worker.check(builds[name])
                assert list(check.reasons) == []
            except CandidateError as error:
                reasons[name] = str(error)
        found = worker.measure(builds, 5)
    assert list(reasons) == ["trap", "wait", "stray"]
    assert reasons["wait"] == "does not run: a run took more than 20 s"
    assert "CUDA" in reasons["trap"]
    assert "CUDA" in reasons["stray"]
    assert 0 < found.times["right"] < 0.1
    assert found.rejected.keys() == reasons.keys()
