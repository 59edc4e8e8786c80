"""`cleave compile` by search on a machine without a GPU, from a graph to a cubin."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import pytest

import cleave
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation import building, compilation, place
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compilation.report import RuleReport
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search import compiling, request, searching
from cleave.lowering.search.candidates import (
    Candidates,
    NoScheduleError,
    PlannedCandidate,
    find_candidates,
)
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.lowering.search.gate_check import GraphGate
from cleave.lowering.search.plan_check import check_on_small_sizes, small_sizes
from cleave.lowering.search.stages import chosen_stages
from cleave.lowering.toolchain import find_nvcc
from cleave.tools import main, opt
from cleave.tools.graph_file import parse_graph

pytest.importorskip("tilelang")

MATMUL = """
algebra.graph @product [M, K, N] where [M = 256, K = 128, N = 256]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}"""
SOFTMAX = MATMUL.replace(
    "%o = algebra.matmul %x, %w\n",
    """%a = algebra.matmul %x, %w
  %e = algebra.exp %a
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %e, %l
""",
)
DYNAMIC = MATMUL.replace("M = 256, ", "")

CACHED = """
import sys
from cleave.lowering import toolchain
if "{nvcc}" == "without nvcc":
    toolchain.find_nvcc = lambda: None
from cleave.tools import main
status = main.main(sys.argv[1:])
heavy = {"torch", "tilelang", "numpy"} & sys.modules.keys()
sys.exit(status or ", ".join(heavy) or 0)
"""
"""A command that imports nothing which it takes to search, compile or run."""

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_device() -> None:
        raise NoDeviceError("no CUDA device")

    monkeypatch.setenv("CLEAVE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(place, "visible_device", no_device)


@needs_nvcc
def test_a_second_compilation_compiles_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "product.mlir"
    file.write_text(MATMUL)
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("of somebody else")
    command = ["compile", str(file), "--effort=quick", f"--out={out}"]

    assert main.main([*command, "--budget-seconds=300"]) == 0
    shown, progress = capsys.readouterr()
    assert "searched  " in shown
    assert "floor     60.96 ns; predicted is " in shown
    assert "kernel    kernel_0: " in shown
    assert "bound     kernel_0: by " in shown
    assert " s  build: 1 of " in progress
    names = {path.name for path in out.iterdir()}
    assert {"kernel_0.cubin", "report.json", "report.html", "00_input.mlir"} < names
    stages = sorted(path for path in out.glob("*.mlir"))
    assert [path.stem for path in stages] == [
        "00_input",
        "01_symbolize",
        "02_drop-shifts",
        "03_equal-graphs",
        "04_chosen-graphs",
        "05_insert-casts",
        "06_schedule-loops",
        "07_plan-memory",
    ]
    assert [opt.main([str(path)]) for path in stages] == [0] * len(stages)
    assert "builtin.module" in capsys.readouterr().out
    assert "<svg" in (out / "report.html").read_text()
    report = json.loads((out / "report.json").read_text())
    assert report["chosen"]
    assert {trial["graph"] for trial in report["trials"]} == {"product_1"}
    assert report["checked"] == "numpy-tiles"
    assert report["max_error"] < report["allowed_error"]

    again = json.loads(_cached([*command, "--budget-seconds=300", "--json"]))
    assert again["notes"][-1].startswith("from the cache, made in ")
    assert again["kernel_source"] == (out / "module.py").read_text()
    assert next(iter(again["stages"])) == "input"
    differ = {"notes", "seconds"}
    assert {k: v for k, v in report.items() if k not in differ} == {
        k: again[k] for k in report if k not in differ
    }
    assert list(again["seconds"]) == ["cache"]
    assert (out / "notes.txt").exists()
    assert not {"compiled.json", "digests.json"} & {p.name for p in out.iterdir()}

    # Another budget, and no cache, are other requests.
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(searching, "find_candidates", refuse)
    with pytest.raises(AssertionError, match="compiled"):
        cleave.compile(file, effort="quick")
    with pytest.raises(AssertionError, match="compiled"):
        cleave.compile(file, effort="quick", budget_seconds=300, cache=False)


def _cached(command: list[str], nvcc: str = "") -> str:
    """What a command prints in a process of its own, which takes under 2 s."""
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", CACHED.replace("{nvcc}", nvcc), *command],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    after = getrusage(RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 2
    assert done.stderr == ""
    return done.stdout


def found_without_search(graph: GraphOp, iterate: bool = True) -> Candidates:
    return find_candidates(
        graph,
        EFFORTS["quick"],
        load_hardware("h200"),
        Ablation(superoptimize=False, iterate=iterate),
        False,
        lambda step: None,
    )


def test_plans_mean_what_the_graph_does() -> None:
    """Also those of several kernels, whose small sizes suit all of them."""
    graph = compiling.symbolized(parse_graph(SOFTMAX.encode(), "text"))
    found = found_without_search(graph)
    ours = [plan for plan in found.plans if not plan.calls_library]
    (unfused,) = [plan for plan in found.plans if plan.calls_library]
    assert unfused.is_unfused
    assert [text.partition(" ")[0] for text in unfused.schedules] == ["matmul", "tile"]
    assert "1 kernel and 1 library call" in unfused.source
    gate = GraphGate(graph)
    for plan in [ours[0], unfused]:
        check = check_on_small_sizes(graph, plan.plan)
        assert list(check.reasons) == []
        assert check.sizes["M"] * check.sizes["N"] <= 2**18
        assert gate.reason(plan.pieces) is None


@pytest.mark.parametrize("shape", ["alone", "softmax"])
def test_a_library_is_called_where_no_kernel_has_a_tile(shape: str) -> None:
    """Rows of 4096 terms, which fit no threadblock, in products that never loop."""
    text = MATMUL if shape == "alone" else SOFTMAX
    text = text.replace("K = 128", "K = 4096")
    graph = compiling.symbolized(parse_graph(text.encode(), "text"))
    (plan,) = found_without_search(graph, iterate=False).plans
    assert plan.calls_library
    assert list(check_on_small_sizes(graph, plan.plan).reasons) == []


def test_sizes_that_constants_are_made_of_stay() -> None:
    """A pass may have made a number of them, as of `1 / sqrt(K)`."""
    scaled = MATMUL.replace("K = 128", "K = 512").replace(
        "%o = algebra.matmul %x, %w\n",
        """%a = algebra.matmul %x, %w
  %k = algebra.constant K : !algebra.tensor<[1, 1], f32>
  %o = algebra.div %a, %k
""",
    )
    for text, size in (
        (scaled, 512),
        (scaled.replace("constant K", "constant 3"), 128),
    ):
        graph = compiling.symbolized(parse_graph(text.encode(), "text"))
        plans = found_without_search(graph).plans
        ours = next(plan for plan in plans if not plan.is_unfused)
        assert small_sizes(graph, ours.plan)["K"] == size


def test_rows_without_keys_are_no_mistake(
    example_graph: Callable[..., GraphOp],
) -> None:
    """As it is written, the graph has NaNs in them; it means 0."""
    graph = example_graph("attention_causal", H=1, M=320, L=192, D=64)
    graph = compiling.symbolized(graph)
    for plan in found_without_search(graph).plans:
        check = check_on_small_sizes(graph, plan.plan)
        assert list(check.reasons) == []
        assert check.sizes["M"] > check.sizes["L"]


def test_small_sizes_keep_what_split_counts_divide(
    example_graph: Callable[..., GraphOp],
) -> None:
    graph = compiling.symbolized(
        example_graph("attention_softmax", H=2, M=1, L=1000, D=128)
    )
    found = find_candidates(
        graph, EFFORTS["normal"], load_hardware("h200"), Ablation(), False, str
    )
    split = [plan for plan in found.plans if "s" in plan.plan.symbol_names]
    assert split
    for plan in split:
        check = check_on_small_sizes(graph, plan.plan)
        assert list(check.reasons) == []


# The rule as the last resort

ODD = """
algebra.graph @attention [M, L, D] where [M = 203, L = 799, D = 80]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>) -> (!algebra.tensor<[M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %o = algebra.matmul %p, %v
  algebra.return %o
}"""


def searched_in_vain(ablation: Ablation) -> tuple[Any, list[PlannedCandidate]]:
    """What is tried, as a search that has no plan itself leaves it to `tune`."""
    graph = compiling.symbolized(parse_graph(ODD.encode(), "text"))
    place = searching.Place(load_hardware("h200"), None, None, {})
    asked: list[PlannedCandidate] = []

    def refuse(*_: object, **__: object) -> None:
        raise NoScheduleError("@attention has no legal schedule: a rule")

    def tune(graph: GraphOp, plans: Any, *_: object, **options: Any) -> None:
        asked.extend([*plans, *options["later"], *options["last"]])
        raise CompilationError("none works")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "find_candidates", refuse)
        patch.setattr(searching, "tune", tune)
        with pytest.raises(NoScheduleError, match=r"no legal schedule: a rule$"):
            searching.searched(
                graph,
                Path(),
                place,
                effort="quick",
                ablation=ablation,
                fast_math=False,
                deadline=None,
                progress=lambda step: None,
            )
    return graph, asked


def test_a_graph_without_a_schedule_takes_the_rule() -> None:
    graph, plans = searched_in_vain(Ablation())
    assert len(plans) == compilation.MOST_BUILDS
    gate = GraphGate(graph)
    for plan in plans:
        assert plan.schedules[0].startswith("by the rule: tile M=")
        assert 0 < plan.predicted_ms < 1
        assert list(check_on_small_sizes(graph, plan.plan).reasons) == []
        assert gate.reason(plan.pieces) is None
        assert "itgraph.loop" in chosen_stages(plan)["schedule-loops"]


def test_an_ablation_does_not() -> None:
    assert searched_in_vain(Ablation(iterate=False))[1] == []


# Requests


def test_what_is_stated_or_dynamic_takes_the_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[object, list[str]]] = []

    def by_rule(graph: Any, wanted: Any, **options: Any) -> None:
        asked.append((wanted.tile, options["notes"]))

    def by_search(*_: object, **__: object) -> None:
        asked.append(("search", []))

    monkeypatch.setattr(request, "compile_by_rule", by_rule)
    monkeypatch.setattr(request, "compile_by_search", by_search)
    monkeypatch.setattr(request, "find_nvcc", lambda: None)
    cleave.compile(MATMUL, effort="rule")
    cleave.compile(MATMUL, tile="M=64")
    cleave.compile(MATMUL, tile="M=64", effort="full")
    cleave.compile(DYNAMIC, effort="full")
    cleave.compile(MATMUL)
    cleave.compile(MATMUL, effort="quick")
    assert asked == [
        (None, []),
        ({"M": 64}, []),
        ({"M": 64}, ["not searched, for tile is stated"]),
        (None, ["not searched, for M is only known at run time"]),
        (None, ["not searched, for there is no nvcc to build candidates with"]),
        ("search", []),
    ]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            {"effort": "rule", "budget_seconds": 5, "iterate": False, "layouts": False},
            "effort is rule; without effect: budget-seconds, no-iterate, no-layouts",
        ),
        (
            {"tile": "M=128", "superoptimize": False},
            "tile is stated; without effect: no-superoptimize",
        ),
        (
            {"tile": "M=128", "stages": 2, "effort": "full", "budget_seconds": 3},
            "tile, stages is stated; without effect: budget-seconds",
        ),
    ],
)
def test_options_of_a_search_that_is_none_are_noted(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], note: str
) -> None:
    noted: list[str] = []

    def by_rule(*_: object, notes: list[str], **__: object) -> None:
        noted.extend(notes)

    monkeypatch.setattr(request, "compile_by_rule", by_rule)
    cleave.compile(MATMUL, **options)
    assert noted == [f"not searched, for {note}"]


def test_the_result_of_the_rule_is_kept_as_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the notes of each request, and under all that a configuration states."""
    for module in (request, building, place):
        monkeypatch.setattr(module, "find_nvcc", lambda: None)
    first = cleave.compile(DYNAMIC, out_dir=tmp_path / "first")
    assert isinstance(first.report, RuleReport)
    note = "not searched, for M is only known at run time"
    assert first.report.notes == [note]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(compilation, "compile_graph", refuse)
    second = cleave.compile(DYNAMIC, out_dir=tmp_path / "second", budget_seconds=9)
    kept, request_note = second.report.notes
    assert kept.startswith("from the cache, made in ")
    assert request_note == f"{note}; without effect: budget-seconds"
    seconds = first.report.seconds
    assert replace(second.report, notes=[note], seconds=seconds) == first.report
    assert second.stages == first.stages
    for file in (tmp_path / "first").iterdir():
        if file.name not in ("report.json", "report.html"):
            assert (tmp_path / "second" / file.name).read_text() == file.read_text()
    file = tmp_path / "dynamic.mlir"
    file.write_text(DYNAMIC)
    third = json.loads(_cached(["compile", str(file), "--json"], "without nvcc"))
    assert third["notes"] == [kept, note]
    assert third["kernel_source"] == first.source
    others: list[dict[str, Any]] = [
        {"cache": False},
        {"fast_math": True},
        {"tile": "N=64"},
        {"reduce": "K=64"},
        {"threads": 128},
        {"stages": 3},
        {"swizzle": 4},
    ]
    for options in others:
        with pytest.raises(AssertionError, match="compiled"):
            cleave.compile(DYNAMIC, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": "more"}, "effort is 'more', not one of quick, normal, full, rule"),
        ({"budget_seconds": -1}, "budget-seconds is -1; it is a number above 0"),
        ({"budget_seconds": "x"}, "budget-seconds is 'x'; it is a number above 0"),
        ({"effort": "quick", "require_gpu": True}, "a GPU is required: no CUDA dev"),
    ],
)
def test_bad_requests(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        cleave.compile(MATMUL, **options)


def test_a_graph_that_is_none() -> None:
    graph: Any = 3
    message = "^graph is int; it is a path, IR text or an algebra.graph$"
    with pytest.raises(TypeError, match=message):
        cleave.compile(graph)


@needs_nvcc
def test_tensors_that_do_not_fit_are_one_message() -> None:
    text = MATMUL.replace("M = 256", "M = 1048576").replace("N = 256", "N = 1048576")
    message = "^@product: inputs and results take 2,200 GB, but NVIDIA H200 has 151 GB$"
    for effort in ("quick", "rule"):
        with pytest.raises(CompilationError, match=message):
            cleave.compile(text, effort=effort)
    with pytest.raises(CompilationError, match=message):
        cleave.compile(text, tile="M=64")


def test_ctrl_c_is_silent_and_leaves_no_entry(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def interrupted(*_: object, **__: object) -> Candidates:
        raise KeyboardInterrupt

    monkeypatch.setattr(searching, "find_candidates", interrupted)
    monkeypatch.setattr(place, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(place, "nvcc_version", str)
    file = tmp_path / "product.mlir"
    file.write_text(MATMUL)
    assert main.main(["compile", str(file), "--effort=quick", "--quiet"]) == 130
    assert capsys.readouterr() == ("", "")
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]
