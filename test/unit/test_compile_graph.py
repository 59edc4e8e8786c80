"""`cleave.compile` without a GPU: graphs, the order of candidates, and what is kept."""

import gc
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.utils.exceptions import DiagnosticException, ParseError

import cleave
from cleave.lowering.built_plan import load_built
from cleave.lowering.compilation import building, compilation, place
from cleave.lowering.compilation import compiled as compiled_module
from cleave.lowering.compilation.accuracy import DRAWINGS, NumericCheck
from cleave.lowering.compilation.building import Build, BuildError
from cleave.lowering.compilation.compiled import Compiled
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.kernel_library import NotRunnableError
from cleave.lowering.toolchain import find_nvcc
from cleave.tools.graph_file import parse_graph

pytest.importorskip("tilelang")

EXAMPLES = Path(__file__).parents[2] / "examples"
STAGES = [
    "input",
    "symbolize",
    "drop-shifts",
    "stabilize-exp",
    "insert-casts",
    "sink-scales",
    "schedule-blocks",
    "schedule-reductions",
    "schedule-masks",
    "plan-memory",
]

CHAIN = """
algebra.graph @chain [M, N] where [M = 4096, N = 1023]
    (%x: !algebra.tensor<[M, N], bf16>, %y: !algebra.tensor<[N], f32>)
    -> (!algebra.tensor<[M, N], bf16>) {
  %a = algebra.silu %x
  %b = algebra.mul %a, %y
  %c = algebra.add %b, %x
  algebra.return %c
}"""
REDUCTION = """
algebra.graph @reduction [M, N] where [M = 4099, N = 4096]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, 1], f32>) {
  %s = algebra.reduce_max %x dim 1
  algebra.return %s
}"""
SOFTMAX = """
algebra.graph @softmax [M, N] where [M = 341, N = 1023]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, N], f16>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %e, %l
  algebra.return %o
}"""
TWO_SWIGLUS = """
algebra.graph @two_swiglus [M, K, F, N] where [M = 4096, K = 1024, F = 2048, N = 1024]
    (%x: !algebra.tensor<[M, K], f16>, %w1: !algebra.tensor<[K, F], f16>,
     %w2: !algebra.tensor<[K, F], f16>, %w3: !algebra.tensor<[F, N], f16>,
     %w4: !algebra.tensor<[F, N], f16>) -> (!algebra.tensor<[M, N], f16>) {
  %a = algebra.matmul %x, %w1
  %b = algebra.matmul %x, %w2
  %g = algebra.silu %a
  %h = algebra.mul %g, %b
  %c = algebra.matmul %h, %w3
  %d = algebra.matmul %h, %w4
  %i = algebra.silu %c
  %o = algebra.mul %i, %d
  algebra.return %o
}"""
ODD_MATMUL = """
algebra.graph @odd_matmul [M, K, N] where [M = 1023, K = 4231, N = 341]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}"""
OTHERS = {
    "chain": CHAIN,
    "reduction": REDUCTION,
    "softmax": SOFTMAX,
    "two_swiglus": TWO_SWIGLUS,
    "odd_matmul": ODD_MATMUL,
}

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")


def compiled_by_rule(graph: Any, **options: Any) -> Any:
    return cleave.compile(graph, effort="rule", cache=False, **options)


def no_device() -> None:
    raise NoDeviceError("no CUDA device")


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "visible_device", no_device)


@pytest.fixture
def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (building, place):
        monkeypatch.setattr(module, "find_nvcc", lambda: None)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """
    `build(*outcomes)` makes builds come out like that, one after the other: None is one
    without faults, an exception is raised. Returns the sources, as they are built. The
    numbers of all of them are right.
    """

    def prepare(
        *outcomes: list[str] | BuildError | None, only_lacks: bool = False
    ) -> list[str]:
        sources: list[str] = []

        def build_module(source: str, hardware: object, folder: Path) -> Build:
            outcome = outcomes[len(sources)]
            sources.append(source)
            if isinstance(outcome, BuildError):
                raise outcome
            folder.mkdir()
            kernel: dict[str, Any] = {
                "name": "k",
                "threads": 1,
                "dynamic_smem_bytes": 0,
            }
            return Build(folder, None, [kernel], outcome or [], only_lacks)

        def check_tiles(graph: object, program: object) -> NumericCheck:
            return NumericCheck("numpy-tiles", {}, DRAWINGS[0], [0.0], [1.0], [])

        monkeypatch.setattr(compilation, "build_module", build_module)
        monkeypatch.setattr(compilation, "check_tiles", check_tiles)
        return sources

    return prepare


# Graphs


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", [path.stem for path in sorted(EXAMPLES.iterdir())])
def test_every_example_compiles(name: str, tmp_path: Path) -> None:
    compiled = compiled_by_rule(EXAMPLES / f"{name}.mlir", out_dir=tmp_path)
    report = compiled.report
    assert compiled.name == name
    assert report.check.method == "numpy-tiles"
    assert report.check.max_error <= report.check.max_allowed
    assert report.faults == []
    assert "__global__ void" in (tmp_path / "kernel_0.cu").read_text()


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", OTHERS)
def test_graphs_that_nobody_listed_compile(name: str) -> None:
    compiled = compiled_by_rule(OTHERS[name])
    assert compiled.report.check.max_error <= compiled.report.check.max_allowed


@needs_nvcc
def test_a_cubin_is_built_and_everything_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kernel_7.cu").write_text("of an earlier compilation")
    (tmp_path / "notes.txt").write_text("of somebody else")
    compiled = compiled_by_rule(EXAMPLES / "attention_fig5a.mlir", out_dir=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    stages = {f"{n:02}_{stage}.mlir" for n, stage in enumerate(STAGES)}
    kernel = {f"kernel_0.{kind}" for kind in ("cu", "cubin", "so")}
    others = {"module.py", "built.json", "report.json", "report.html", "notes.txt"}
    assert names == stages | kernel | others
    assert (tmp_path / "module.py").read_text() == compiled.source
    assert (tmp_path / "00_input.mlir").read_text() == compiled.stages["input"]
    assert list(compiled.stages) == STAGES
    assert compiled.stages["plan-memory"].startswith("itgraph.plan @attention_fig5a")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "threadblocks over" in page
    assert "the time that each resource alone would take" in page
    assert json.loads((tmp_path / "report.json").read_text()) == compiled.report.json()
    assert load_built(tmp_path).plan.name == "attention_fig5a"
    (report,) = compiled.report.kernels
    assert report["spill_store_bytes"] == 0
    assert report["instructions"]["wgmma"] > 0
    assert report["instructions"]["tma"] > 0
    assert "nvcc" in compiled.report.versions


# Sources of graphs


@pytest.mark.usefixtures("without_nvcc")
def test_a_graph_is_a_path_a_text_or_an_operation(tmp_path: Path) -> None:
    path = tmp_path / "chain.mlir"
    path.write_text(CHAIN)
    op = parse_graph(CHAIN.encode(), "text")
    before = str(op)
    compiled = [compiled_by_rule(each) for each in (str(path), path, CHAIN, op)]
    assert len({each.source for each in compiled}) == 1
    assert str(op) == before


def test_a_text_with_several_graphs_needs_a_name(
    build: Callable[..., list[str]],
) -> None:
    build(None)
    text = CHAIN + REDUCTION
    with pytest.raises(DiagnosticException, match="2 graphs, so name one: chain, redu"):
        compiled_by_rule(text)
    with pytest.raises(DiagnosticException, match="no graph 'chian': did you mean ch"):
        compiled_by_rule(text, name="chian")
    assert compiled_by_rule(text, name="reduction").name == "reduction"


def test_a_text_that_does_not_parse() -> None:
    with pytest.raises(ParseError, match=r"no operation 'algebra\.silo'"):
        compiled_by_rule(CHAIN.replace("silu", "silo"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        compiled_by_rule(tmp_path / "missing.mlir")


# What comes back


def test_without_a_gpu_it_is_all_there_but_cannot_be_called(
    build: Callable[..., list[str]],
) -> None:
    build(None)
    compiled = compiled_by_rule(EXAMPLES / "matmul.mlir")
    assert compiled.source.startswith('"""matmul: 1 kernel, generated by Cleave."""')
    message = "^@matmul was compiled, but cannot run here: no CUDA device$"
    with pytest.raises(NotRunnableError, match=message):
        compiled()
    with pytest.raises(NotRunnableError, match=message):
        compiled.workspace_bytes()
    assert repr(compiled) == (
        "<Compiled @matmul: tile M=128 N=256, reduce K=64, default threads, 3 stages, "
        "swizzle 10; not runnable here>"
    )


def test_calls_are_passed_on(
    build: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Runnable:
        def __call__(self, *args: object, **options: object) -> object:
            return (args, options)

        def workspace_bytes(self, **sizes: int) -> int:
            return sizes["M"]

    build(None)
    made = compiled_by_rule(EXAMPLES / "matmul.mlir")
    runnable: Any = Runnable()

    def load_built(folder: Path) -> Path:
        return folder

    def load_compiled(built: Path, device: object) -> object:
        assert (built, str(device)) == (made.folder, "cuda:1")
        return runnable

    monkeypatch.setattr(compiled_module, "load_built", load_built)
    monkeypatch.setattr("cleave.lowering.runtime.load_compiled", load_compiled)
    compiled = Compiled(made.source, made.stages, made.report, made.folder, 1)
    x: Any = "x"
    assert compiled(x, out=x) == (("x",), {"out": "x", "workspace": None})
    assert compiled.workspace_bytes(M=5) == 5


def test_a_folder_that_nobody_asked_for_goes_with_the_object(
    build: Callable[..., list[str]],
) -> None:
    build(None)
    compiled = compiled_by_rule(EXAMPLES / "matmul.mlir")
    folder = compiled.folder
    assert (folder / "report.json").exists()
    del compiled
    gc.collect()
    assert not folder.exists()


# Candidates


def test_the_first_without_a_fault_is_taken(build: Callable[..., list[str]]) -> None:
    died = BuildError("compilation died (SIGKILL)", is_lost=True)
    sources = build(died, ["it spills"], None)
    compiled = compiled_by_rule(EXAMPLES / "matmul.mlir")
    assert len(set(sources)) == 3
    assert compiled.source == sources[2]
    reasons = [rejection.reason for rejection in compiled.report.rejected]
    assert reasons == ["compilation died (SIGKILL)", "it spills"]
    lost = [rejection.is_lost for rejection in compiled.report.rejected]
    assert lost == [True, False]
    assert compiled.report.faults == []


def test_what_no_tile_would_change_is_no_reason_to_go_on(
    build: Callable[..., list[str]],
) -> None:
    """Rows that do not begin at multiples of 16 bytes, as TMA wants, never do."""
    sources = build(["tma is required"], only_lacks=True)
    report = compiled_by_rule(EXAMPLES / "matmul.mlir").report
    assert report.faults == ["tma is required"]
    assert len(sources) == 1


def test_where_all_have_faults_the_first_is_taken(
    build: Callable[..., list[str]],
) -> None:
    sources = build(["it spills"], *[["it spills more"]] * 3)
    compiled = compiled_by_rule(EXAMPLES / "matmul.mlir")
    assert compiled.source == sources[0]
    assert compiled.report.faults == ["it spills"]
    reasons = [rejection.reason for rejection in compiled.report.rejected]
    assert reasons == ["it spills more"] * 3


def test_where_none_builds_the_last_reason_is_given(
    build: Callable[..., list[str]], tmp_path: Path
) -> None:
    build(*[BuildError(f"refused {n}") for n in range(4)])
    with pytest.raises(CompilationError) as caught:
        compiled_by_rule(EXAMPLES / "matmul.mlir", out_dir=tmp_path)
    assert str(caught.value).startswith("@matmul: none of 4 configurations works; the ")
    assert str(caught.value).endswith(": refused 3")
    # The program that was refused can be looked at.
    assert (tmp_path / "module.py").exists()


def test_stated_tiles_that_do_not_fit_are_refused_with_the_limit() -> None:
    message = "^@matmul: tiles take 1048576 bytes of SMEM, a threadblock has 232448$"
    with pytest.raises(CompilationError, match=message):
        compiled_by_rule(
            EXAMPLES / "matmul.mlir", tile="M=128 N=128", reduce={"K": 1024}
        )


def test_dims_may_be_numbers(build: Callable[..., list[str]]) -> None:
    build(None)
    text = CHAIN.replace("[M, N] where [M = 4096, N = 1023]", "[]")
    text = text.replace("[M, N]", "[4096, 1023]").replace("[N]", "[1023]")
    report = compiled_by_rule(text).report
    assert report.configuration.tile == {"d0": 16, "d1": 256}
    assert report.sizes == {"d0": 4096, "d1": 1023}


@pytest.mark.usefixtures("without_nvcc")
def test_wrong_numbers_are_a_reason_to_reject(monkeypatch: pytest.MonkeyPatch) -> None:
    right = compilation.check_tiles

    def check_tiles(graph: Any, program: Any) -> Any:
        found = right(graph, program)
        is_first = program.configuration.tile["N"] == 256
        return replace(found, reasons=["result 0: far off"] if is_first else [])

    monkeypatch.setattr(compilation, "check_tiles", check_tiles)
    report = compiled_by_rule(EXAMPLES / "matmul.mlir").report
    (rejection,) = report.rejected
    assert rejection.reason == "wrong numbers (numpy-tiles): result 0: far off"
    assert report.configuration.tile == {"M": 128, "N": 128}
