"""Generated modules down to machine code; a cubin takes about two seconds."""

from pathlib import Path
from typing import Any

import pytest

from bench.attention_cases import AttentionKernel
from bench.attention_check import program_of
from cleave.lowering import cuda, toolchain
from cleave.lowering.built_plan import BuiltPlan, BuiltPlanError, load_built
from cleave.lowering.cuda import LoweringError, build, lower
from cleave.lowering.generated import GeneratedModule, load_generated
from cleave.lowering.hardware import load_hardware
from cleave.lowering.kernel_library import load_library
from cleave.lowering.toolchain import (
    ToolchainError,
    compile_cubin,
    find_nvcc,
    require_nvcc,
)

pytest.importorskip("tilelang")

GENERATED = Path(__file__).parents[1] / "generated"
H200 = load_hardware("h200")

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")


def generated(name: str) -> GeneratedModule:
    return load_generated(GENERATED / f"{name}.py")


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> BuiltPlan:
    return build(generated("matmul"), H200.arch, tmp_path_factory.mktemp("matmul"))


def hook() -> Any:
    """The function that TileLang compiles CUDA with."""
    import tvm_ffi  # pyright: ignore[reportMissingTypeStubs]

    return tvm_ffi.get_global_func(cuda.COMPILE_HOOK)


def test_cuda_text_and_launch_without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    (kernel,) = lower(generated("matmul"), H200.arch)
    assert kernel.function == "kernel_0"
    assert "tl::wgmma_ss<" in kernel.cuda
    launch = kernel.launches["matmul_kernel"]
    # Two consumer warpgroups and a producer; three stages and the output tile.
    assert launch.threads == 384
    assert launch.dynamic_smem_bytes == (3 * 2 * 128 * 64 + 128 * 128) * 2


def test_reads_of_a_tile_are_fenced_before_the_next_one_may_be_loaded(
    tmp_path: Path,
) -> None:
    sizes = {"N": 2, "G": 1, "M": 256, "L": 256}
    biased = AttentionKernel("f16", "bias", 64, 64)
    path = tmp_path / "biased.py"
    source = program_of(biased, sizes).source(fast_math=False)
    path.write_text(source, encoding="utf-8")
    (kernel,) = lower(load_generated(path), H200.arch)
    lines = [line.strip() for line in kernel.cuda.splitlines()]
    calls = [n for n, line in enumerate(lines) if line.startswith("cleave_reads_done(")]
    assert calls
    for call in calls:
        assert lines[call + 1].endswith(".arrive();")


@needs_nvcc
def test_a_matmul_builds_and_is_legal(matmul: BuiltPlan) -> None:
    (kernel,) = matmul.kernels
    (report,) = kernel.reports
    assert matmul.legality(H200) == []
    assert (report.spill_store_bytes, report.stack_bytes) == (0, 0)
    assert report.instructions["wgmma"] > 0
    assert report.instructions["tma"] > 0
    assert report.instructions["mma_sync"] == 0
    assert report.raised_registers == 240
    # 131072 bytes of tiles, and mbarriers in 1024 aligned bytes that ptxas sees.
    assert report.smem_bytes == 131072 + 1024
    names = {path.name for path in matmul.folder.iterdir()}
    assert {"module.py", "kernel_0.cu", "kernel_0.cubin", "kernel_0.so"} <= names


@needs_nvcc
def test_a_built_plan_is_read_back(matmul: BuiltPlan) -> None:
    assert load_built(matmul.folder) == matmul


@needs_nvcc
def test_the_library_loads_and_checks_its_tensors(matmul: BuiltPlan) -> None:
    import torch

    launch = load_library(matmul.kernels[0].library)
    half = [torch.ones(shape).half() for shape in ((256, 384), (384, 512), (256, 512))]
    with pytest.raises(RuntimeError, match="input a device_type mismatch, expected cu"):
        launch(*half)


@needs_nvcc
def test_two_kernels_with_a_dynamic_dim(tmp_path: Path) -> None:
    built = build(generated("matmul_rowsum"), H200.arch, tmp_path)
    assert [k.function for k in built.kernels] == ["kernel_0", "kernel_1"]
    assert built.legality(H200) == []
    first, second = (kernel.reports[0] for kernel in built.kernels)
    assert first.instructions["wgmma"] > 0
    assert first.instructions["tma"] > 0
    assert second.instructions["wgmma"] == 0
    assert second.smem_bytes == 0


@needs_nvcc
def test_a_kernel_that_spills_is_rejected_with_reasons(tmp_path: Path) -> None:
    built = build(generated("chain_without_registers"), H200.arch, tmp_path)
    reasons = built.legality(H200)
    assert len(reasons) == 2
    assert reasons[0].startswith("kernel_0: registers spill: ")
    assert reasons[1].startswith("kernel_0: wgmma is serialized: (C75")


@needs_nvcc
def test_the_compile_hook_is_put_back(tmp_path: Path, matmul: BuiltPlan) -> None:
    before = hook()
    text = (GENERATED / "matmul.py").read_text().replace("a[i * 128", "a[i * nought")
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(LoweringError, match=r"refuses kernel_0: NameError: .*'nought'"):
        build(load_generated(path), H200.arch, tmp_path / "out")
    assert hook().same_as(before)
    with pytest.raises(BuiltPlanError, match=r"built\.json: No such file"):
        load_built(tmp_path / "out")


def test_what_tilelang_refuses_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # With 16 rows it is mma.sync, which lays P out differently as result and operand.
    text = (GENERATED / "chain_without_registers.py").read_text()
    for old, new in {
        "threads=256": "threads=128",
        "t_q = T.alloc_shared((128,": "t_q = T.alloc_shared((16,",
        "fragment((128,": "fragment((16,",
        "i * 128 : (i + 1) * 128": "i * 16 : (i + 1) * 16",
    }.items():
        text = text.replace(old, new)
    path = tmp_path / "refused.py"
    path.write_text(text)
    with pytest.raises(LoweringError) as caught:
        lower(load_generated(path), H200.arch)
    assert str(caught.value).startswith("TileLang refuses kernel_0: InternalError: ")
    assert "\n" not in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err


def test_without_tilelang(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(LoweringError, match="TileLang is not installed"):
        lower(generated("matmul"), H200.arch)


def test_without_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    with pytest.raises(ToolchainError, match="no nvcc: not in CUDA_HOME, not on PATH"):
        build(generated("matmul"), H200.arch, tmp_path)


@needs_nvcc
def test_what_nvcc_refuses_is_one_line(tmp_path: Path) -> None:
    nvcc = require_nvcc()
    source = tmp_path / "wrong.cu"
    source.write_text("__global__ void f(float *x) {\n  x[0] = y;\n}\n")
    message = r"^nvcc cannot compile wrong\.cu: .*wrong\.cu\(2\): error: .*\"y\".*$"
    with pytest.raises(ToolchainError, match=message):
        compile_cubin(source, H200.arch, [], nvcc)


def test_nvcc_options_follow_the_pass_configs() -> None:
    assert cuda.nvcc_options({}) == []
    configs = {
        "tl.enable_fast_math": True,
        "tl.ptxas_register_usage_level": 10,
        "tl.device_compile_flags": "--ftz=true -DN='a b'",
    }
    assert cuda.nvcc_options(configs) == [
        "--use_fast_math",
        "-Xptxas=--register-usage-level=10",
        "--ftz=true",
        "-DN=a b",
    ]


def test_cuda_home_comes_before_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("home/bin", "path"):
        tool = tmp_path / folder / "nvcc"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_nvcc() == tmp_path / "home/bin/nvcc"
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "elsewhere"))
    assert find_nvcc() == tmp_path / "path/nvcc"


def test_a_damaged_manifest_is_no_built_plan(tmp_path: Path) -> None:
    (tmp_path / "built.json").write_text("{}")
    with pytest.raises(BuiltPlanError, match=r"built\.json is damaged: 'plan'"):
        load_built(tmp_path)
