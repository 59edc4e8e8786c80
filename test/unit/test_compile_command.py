"""`cleave compile`: its report, its JSON, and one message for each bad input."""

import dataclasses
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from cleave.lowering.compilation import building, compilation, place
from cleave.lowering.compilation.building import Build
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.search.report import SearchReport
from cleave.lowering.toolchain import find_nvcc
from cleave.tools import main

pytest.importorskip("tilelang")

EXAMPLES = Path(__file__).parents[2] / "examples"
MATMUL = (EXAMPLES / "matmul.mlir").read_text()

TERMINATED = """
import os, signal, sys
from cleave.lowering.compilation import compilation
from cleave.lowering.worker import Worker, WorkerLostError
from cleave.tools import main

def build_module(source, hardware, folder):
    folder.mkdir()
    with Worker("cleave.lowering.compile_process", {}) as compiler:
        compiler.start()
        print("a compiler started, ", end="")
        process = compiler._process
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            # As `timeout` does.
            os.kill(os.getpid(), signal.SIGTERM)
            compiler.end()
            if process.returncode == -signal.SIGKILL:
                print("and then it was gone")

compilation.build_module = build_module
compilation.check_tiles = lambda *_: type("Right", (), {"reasons": []})
sys.exit(main.main(["compile", sys.argv[1], "--effort=rule", "--no-cache", "--quiet"]))
"""

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_device() -> None:
        raise NoDeviceError("no CUDA device: there is no NVIDIA driver")

    monkeypatch.setenv("CLEAVE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(place, "visible_device", no_device)


@pytest.fixture
def cleave_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """`cleave_compile(text, *arguments)` compiles a file `input.mlir` of that text."""

    def run(text: str | bytes, *arguments: str) -> CompletedProcess[str]:
        file = tmp_path / "input.mlir"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        command = ["compile", str(file), "--effort=rule", "--quiet", *arguments]
        status = main.main(command)
        out, err = capsys.readouterr()
        return CompletedProcess(command, status, out, err.replace(f"{tmp_path}/", ""))

    return run


@pytest.fixture
def quick_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds that take no time, of a kernel that has a fault."""

    def build_module(source: str, hardware: object, folder: Path) -> Build:
        folder.mkdir()
        kernel = {
            "name": "kernel_0",
            "threads": 384,
            "registers": 168,
            "raised_registers": 240,
            "static_smem_bytes": 1024,
            "dynamic_smem_bytes": 147456,
            "instructions": {"wgmma": 1, "tma": 2, "cp_async": 0},
        }
        return Build(folder, None, [kernel], ["kernel_0: it spills"], True)

    monkeypatch.setattr(compilation, "build_module", build_module)


@pytest.mark.usefixtures("quick_build")
def test_report_is_plain_lines(cleave_compile: Run, tmp_path: Path) -> None:
    done = cleave_compile(MATMUL, "--out", str(tmp_path / "kept"))
    assert (done.returncode, done.stderr) == (0, "")
    # What the model says is not of interest here.
    shown = re.sub(r"1\d\d\.\d us(?=,| of|;.* threadblocks)", "TIME", done.stdout)
    *lines, took, files = shown.splitlines()
    assert lines == [
        "graph     @matmul with M = 4096, K = 4096, N = 4096",
        "GPU       none here; compiled for NVIDIA H200",
        "chosen    tile M=128 N=256, reduce K=64, default threads, 3 stages, "
        "swizzle 10, pipelined",
        "          K: reduced 64 at a time",
        "kernel    kernel_0: 384 threads, 168 registers, raised to 240 in "
        "consumers, 145 KiB of SMEM; wgmma, tma",
        "fault     kernel_0: it spills",
        "checked   in NumPy, tile by tile (not on a GPU) with M = 256, K = 128, "
        "N = 512, inputs N(0, 1): relative error 0.00021 to float64, allowed 0.0014",
        "predicted TIME, 3.000 us of it for launches",
        "bound     kernel_0: by tensor cores, TIME of TIME; "
        "512 threadblocks in 3.88 waves",
        "measured  no: no CUDA device: there is no NVIDIA driver",
        "floor     181.6 us; predicted is 1.03 times that",
    ]
    assert took.startswith("took      schedule ")
    assert files == f"files     {tmp_path / 'kept'}"
    assert (tmp_path / "kept" / "report.json").exists()


@pytest.mark.usefixtures("quick_build")
def test_what_does_not_fit_is_reported(cleave_compile: Run) -> None:
    done = cleave_compile((EXAMPLES / "swiglu.mlir").read_text())
    assert "rejected  tile M=128 N=256, reduce K=64, default threads, 3 st" in (
        done.stdout
    )
    many = cleave_compile((EXAMPLES / "gated_mlp.mlir").read_text())
    assert "and 18 before" in many.stdout


@pytest.mark.usefixtures("quick_build")
def test_json_is_one_object_with_all_that_is_known(cleave_compile: Run) -> None:
    done = cleave_compile(MATMUL, "--json", "--stages=2", "--threads=256")
    found = json.loads(done.stdout)
    searched = [field.name for field in dataclasses.fields(SearchReport)]
    assert list(found) == [
        *searched,
        "configuration",
        "threads",
        "form",
        "pipeline",
        "why",
        "check",
        "kernel_source",
        "stages",
    ]
    assert found["effort"] == "rule"
    assert found["graph"] == "matmul"
    assert found["sizes"] == {"M": 4096, "K": 4096, "N": 4096}
    assert found["chosen"] == [
        "tile M=128 N=256, reduce K=64, 256 threads, 2 stages, swizzle 10"
    ]
    assert found["configuration"] == {
        "tile": {"M": 128, "N": 256},
        "reduce": {"K": 64},
        "threads": 256,
        "stages": 2,
        "swizzle": 10,
    }
    assert (found["threads"], found["form"]) == (256, "pipelined")
    assert found["pipeline"] == (
        "symbolize,drop-shifts,stabilize-exp,insert-casts,sink-scales,"
        'schedule-blocks{tile="M=128 N=256"},schedule-reductions{tile="K=64"},'
        "schedule-masks,plan-memory{threads=256 swizzle=10}"
    )
    assert found["why"] == ["threads, stages: as stated", "K: reduced 64 at a time"]
    (trial,) = found["trials"]
    assert trial == {
        "number": found["chosen_number"],
        "graph": "matmul",
        "schedules": found["chosen"],
        "predicted_ms": found["predicted_ms"],
        "measured_ms": None,
        "max_error": found["max_error"],
        "reason": None,
        "is_unfused": False,
        "calls_library": False,
        "is_lost": False,
    }
    # 2 * 4096^3 FLOP, at what an H200 computes.
    assert 0.1 < found["floor_ms"] < 0.2
    assert found["checked"] == "numpy-tiles"
    assert 0 < found["max_error"] < found["allowed_error"]
    assert found["floor_ms"] < found["predicted_ms"] < 2 * found["floor_ms"]
    (cost,) = found["costs"]
    assert (cost["kernel"], cost["bound_by"]) == ("kernel_0", "tensor cores")
    assert cost["predicted_ms"] + found["launch_ms"] == found["predicted_ms"]
    assert found["measured_ms"] is None
    assert found["not_measured"].startswith("no CUDA device")
    assert found["hardware"] == {"name": "NVIDIA H200", "arch": "sm_90a"}
    assert "def kernel_0():" in found["kernel_source"]
    assert {"cleave", "python", "xdsl", "numpy", "torch", "tilelang"} <= set(
        found["versions"]
    )


@pytest.mark.usefixtures("quick_build")
def test_the_pipeline_is_that_of_cleave_opt(
    cleave_compile: Run, cleave_opt: Run
) -> None:
    found = json.loads(cleave_compile(MATMUL, "--json").stdout)
    passes = found["pipeline"]
    done = cleave_opt(MATMUL, "-p", passes, "-t", "tilelang")
    assert done.stdout == found["kernel_source"]


def test_without_nvcc_there_is_cuda_text(
    cleave_compile: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (building, place):
        monkeypatch.setattr(module, "find_nvcc", lambda: None)
    done = cleave_compile(MATMUL, "--out", str(tmp_path / "kept"))
    assert done.returncode == 0
    assert "KiB of SMEM; CUDA text only, for there is no nvcc\n" in done.stdout
    names = {path.name for path in (tmp_path / "kept").iterdir()}
    assert "kernel_0.cu" in names
    assert not {"kernel_0.cubin", "kernel_0.so", "built.json"} & names
    found = json.loads((tmp_path / "kept" / "report.json").read_text())
    assert "nvcc" not in found["versions"]


def test_standard_input_is_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Input:
        class buffer:
            @staticmethod
            def read() -> bytes:
                return b"algebra.graph"

    monkeypatch.setattr(sys, "stdin", Input)
    assert main.main(["compile", "-"]) == 1
    assert capsys.readouterr().err.startswith("stdin:1:14: error: ")


# Bad input: one message, exit code 1, nothing on standard output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tile", "Z=64"], "tile for 'Z', which is no symbol of @matmul (symbols: "),
        (["--tile", "K=64"], "tile for 'K'"),
        (["--tile", "M"], "the tile of 'M' has no size; write M=SIZE"),
        (["--tile", "M=64 M=32"], "two tiles for 'M'"),
        (["--tile", "M:64"], "tile 'M:64' is not of the form SYMBOL or SYMBOL=SIZE"),
        (["--reduce", "N=64"], "tile for 'N', but @matmul reduces no dim of N"),
        (["--tile", "M=64", "--reduce", ""], "@matmul: tiles take "),
        (["--threads", "7"], "threads is 7; it is a whole number from 32 to 1024"),
        (["--threads", "2048"], "threads is 2048; it is a whole number from 32 to"),
        (["--stages", "0"], "stages is 0; it is a whole number from 1 to"),
        (["--swizzle", "-1"], "swizzle is -1; it is a whole number from 0 to"),
        (["--threads", "many"], "argument --threads: invalid int value: 'many'"),
        (["--graph", "matmule"], "no graph 'matmule': did you mean matmul?"),
        (["--fastest"], "unrecognized arguments: --fastest"),
        (["--effort=more"], "effort is 'more', not one of quick, normal, full, rule"),
        (["--budget-seconds=0"], "budget-seconds is 0.0; it is a number above 0"),
        (["--budget-seconds=nan"], "budget-seconds is nan; it is a number above 0"),
        (
            ["--require-gpu"],
            "a GPU is required: no CUDA device: there is no NVIDIA driver",
        ),
    ],
)
def test_arguments_that_ask_for_too_much(
    arguments: list[str], message: str, cleave_compile: Run
) -> None:
    done = cleave_compile(MATMUL, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "error: " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module {}", "error: input.mlir: there is no algebra.graph"),
        ("", "error: input.mlir: there is no algebra.graph"),
        ("// nothing yet\n\n", "error: input.mlir: there is no algebra.graph"),
        ("# a note", "input.mlir:1:1: error: Expected suffix identifier after '#'"),
        (
            MATMUL.replace("%x, %w\n", "%x %w\n"),
            "input.mlir:5:26: error: Expected ','",
        ),
        (
            MATMUL.replace("matmul %x, %w", "matmul %w, %x"),
            "error: 'algebra.matmul' op: contracts lhs dim 1, which is N, with rhs ",
        ),
        (
            MATMUL.replace("[M, K, N] where", "[M, K] where"),
            "error: 'algebra.graph' op: @matmul: fact `N = 4096` uses",
        ),
        (MATMUL * 2, "error: 'builtin.module' op: Redefinition of symbol \"matmul\""),
        (
            MATMUL + MATMUL.replace("@matmul", "@other"),
            "error: input.mlir: there are 2 graphs, so name one: matmul, other",
        ),
        (b"\xff\xfe", "error: input.mlir: not UTF-8"),
    ],
)
def test_files_that_are_no_graph(
    text: str | bytes, message: str, cleave_compile: Run
) -> None:
    done = cleave_compile(text)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_only_the_operator_is_marked_where_its_type_is_left_out(
    cleave_compile: Run,
) -> None:
    before, after = (
        "%w: !algebra.tensor<[K, N], f16>",
        "%w: !algebra.tensor<[K, N], bf16>",
    )
    assert before in MATMUL
    done = cleave_compile(MATMUL.replace(before, after))
    (message, line, carets) = done.stderr.splitlines()
    assert message.endswith("error: 'algebra.matmul' op: lhs is f16 but rhs is bf16")
    assert line[carets.index("^") : carets.index("^") + carets.count("^")] == "%x, %w"


@pytest.mark.parametrize(
    "effort",
    [
        "rule",
        pytest.param(
            "quick", marks=pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
        ),
    ],
)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"f16": "f64"},
            "error: @matmul: 'algebra.matmul' op: operand 0 is !algebra.tensor<[M, K], "
            "f64>, but kernels compute f32: cast it to f32\n",
        ),
        (
            {"f16>, %w": "i32>, %w"},
            "'algebra.matmul' op: operand 0 has elements of type i32, but this "
            "operator computes with floats",
        ),
        (
            {"f16>, %w": "f32>, %w"},
            "error: @matmul: 'algebra.matmul' op: lhs %x is !algebra.tensor<[M, K], "
            "f32>, but rhs %w is multiplied as f16, and nothing says that lhs may be "
            "rounded: say which with `algebra.cast`, as in `algebra.cast %x to f16`\n",
        ),
        (
            {
                "[M, K, N] where [": "[M, K, N, s] where [s | K, ",
                "%o =": "%xs = algebra.split %x dim 1 count s\n  %o =",
            },
            "error: @matmul: the split count s has no value; state it, as in "
            "`where [s = 2]`\n",
        ),
    ],
)
def test_what_no_kernel_computes_is_refused_at_once(
    cleave_compile: Run, effort: str, changes: dict[str, str], message: str
) -> None:
    text = MATMUL
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    done = cleave_compile(text, "--effort", effort, "--no-cache", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "configurations" not in done.stderr


def test_operands_that_tensor_cores_would_round_are_refused_at_once(
    cleave_compile: Run,
) -> None:
    """By the rule; a search may take a library's matmul, which rounds nothing."""
    done = cleave_compile(MATMUL.replace("f16", "f32"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "error: @matmul: 'algebra.matmul' op: operand 0 is !algebra.tensor<[M, K], "
        "f32>, but tensor cores multiply f16 and bf16, and f32 rounded to tf32"
    )


@pytest.mark.parametrize("again", ["%sum", "%row"])
def test_a_value_that_is_returned_twice_is_refused(
    cleave_compile: Run, again: str
) -> None:
    dims = "[M]" if again == "%row" else "[M, 1]"
    done = cleave_compile(f"""
        algebra.graph @twice [M, K] where [M = 64, K = 64]
            (%x: !algebra.tensor<[M, K], f32>)
            -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<{dims}, f32>) {{
          %sum = algebra.reduce_sum %x dim 1
          %row = algebra.reshape %sum to [M]
          algebra.return %sum, {again}
        }}""")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: @twice: results 0 and 1 are one value; return it once\n"
    )


def test_more_than_the_memory_holds_is_refused(cleave_compile: Run) -> None:
    done = cleave_compile(MATMUL.replace("M = 4096", "M = 99999999999999999999"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: @matmul: inputs and results take " in done.stderr
    assert " GB, but NVIDIA H200 has 151 GB" in done.stderr


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", "missing.mlir"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: missing.mlir: No such file or directory\n")


@pytest.mark.usefixtures("quick_build")
@pytest.mark.parametrize("as_json", [True, False])
def test_where_files_do_not_fit_the_report_is_printed_all_the_same(
    as_json: bool,
    cleave_compile: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    copy = shutil.copy

    def full(file: Path, folder: Path) -> None:
        if folder.name == "kept":
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(file, folder)

    monkeypatch.setattr(shutil, "copy", full)
    out = tmp_path / "kept"
    done = cleave_compile(MATMUL, "--out", str(out), *(["--json"] if as_json else []))
    assert done.returncode == 1
    assert done.stderr.startswith("error: kept: No space left on device; ")
    if as_json:
        assert json.loads(done.stdout)["graph"] == "matmul"
    else:
        assert done.stdout.startswith("graph     @matmul")
        assert "files     " not in done.stdout
    assert not out.exists()


def test_a_folder_that_cannot_be_made(cleave_compile: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = cleave_compile(MATMUL, "--out", str(tmp_path / "taken"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: taken: File exists\n"


def test_no_tilelang(
    cleave_compile: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tilelang", None)
    done = cleave_compile(MATMUL, "--out", str(tmp_path / "kept"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: TileLang is not installed, which makes CUDA")
    # What needs no TileLang is there.
    assert (tmp_path / "kept" / "module.py").exists()


def test_a_graph_without_a_meaning_for_its_inputs(cleave_compile: Run) -> None:
    """The logarithm of -1 is undefined, whatever the inputs."""
    text = MATMUL.replace(
        "  algebra.return %o",
        "  %a = algebra.square %o\n  %n = algebra.neg %a\n  %l = algebra.log %n\n"
        "  algebra.return %l",
    )
    done = cleave_compile(text)
    assert done.returncode == 1
    assert "wrong numbers" in done.stderr or "undefined" in done.stderr


def test_ctrl_c_is_silent(cleave_compile: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compilation, "build_module", interrupted)
    done = cleave_compile(MATMUL)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_sigterm_ends_what_it_started(tmp_path: Path) -> None:
    """The command is in the midst of a build, which would go on for minutes."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED, str(EXAMPLES / "matmul.mlir")],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (143, "")
    assert done.stdout == "a compiler started, and then it was gone\n"
    assert list(temporary.iterdir()) == []
