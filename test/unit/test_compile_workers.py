"""
Compiling processes that fail in every way. Their modules fail before they get as far as
TileLang, so that a process starts in a fraction of a second.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cleave.lowering import compile_workers
from cleave.lowering.compile_workers import CompileJob, CompileOutcome, compile_all
from cleave.lowering.refused_kernels import RefusedKernels
from cleave.lowering.toolchain import find_nvcc
from cleave.lowering.worker import Worker

GENERATED = Path(__file__).parents[1] / "generated"

PLAN: dict[str, Any] = {
    "name": "x",
    "args": [{"name": "a", "shape": [4], "dtype": "float32"}],
    "results": [{"name": "b", "shape": [4], "dtype": "float32"}],
    "temporaries": [],
    "kernels": [
        {"function": "kernel_0", "args": ["a", "b"], "pass_configs": {}, "requires": []}
    ],
    "sizes": {},
}

pytestmark = [
    pytest.mark.skipif(find_nvcc() is None, reason="no nvcc"),
]
pytest.importorskip("tilelang")


def job(folder: Path, name: str, body: str) -> CompileJob:
    module = folder / f"{name}.py"
    module.write_text(f"PLAN = {PLAN!r}\n{body}\n")
    return CompileJob(name, module, "sm_90a", folder / name)


def reason(outcome: CompileOutcome) -> str:
    assert outcome.built is None
    assert outcome.reason is not None
    assert "\n" not in outcome.reason
    return outcome.reason


def test_each_failure_is_a_reason_and_the_others_go_on(tmp_path: Path) -> None:
    hangs = "import time; time.sleep(600)"
    crashes = "import os, sys; print('stack smashed', file=sys.stderr); os.abort()"
    jobs = [
        job(tmp_path, "raises", "raise OverflowError('too many tiles')"),
        job(tmp_path, "hangs", hangs),
        job(tmp_path, "crashes", crashes),
        job(tmp_path, "exits", "raise SystemExit(3)"),
        job(tmp_path, "grows", "x = bytearray(4 << 30)"),
        job(tmp_path, "speaks", "print('{}'); raise OSError(1, 'after all')"),
    ]
    seen: list[CompileOutcome] = []
    outcomes = compile_all(
        jobs, workers=1, seconds=2, memory_bytes=1 << 30, done=seen.append
    )
    assert [outcome.job.name for outcome in outcomes] == [j.name for j in jobs]
    assert seen == outcomes
    reasons = {outcome.job.name: reason(outcome) for outcome in outcomes}
    assert reasons["raises"].endswith("raises.py: OverflowError: too many tiles")
    assert reasons["hangs"] == "compilation took more than 2 s"
    assert reasons["crashes"] == "compilation died (SIGABRT; stack smashed)"
    assert reasons["exits"] == "compilation died (exit status 3)"
    assert "MemoryError" in reasons["grows"]
    assert reasons["speaks"].endswith("PermissionError: [Errno 1] after all")
    assert 2 <= outcomes[1].seconds < 5
    # Only the first is refused for what it is; the last says so of a disk.
    assert [outcome.is_lost for outcome in outcomes] == [False, *[True] * 5]


def test_a_folder_of_tilelang_that_is_stated_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "import os; raise ValueError(os.environ['TILELANG_CACHE_DIR'])"
    monkeypatch.delenv("TILELANG_CACHE_DIR", raising=False)
    (own,) = compile_all([job(tmp_path, "own", body)])
    assert "ValueError: " + tempfile.gettempdir() in reason(own)
    monkeypatch.setenv("TILELANG_CACHE_DIR", "/stated")
    (stated,) = compile_all([job(tmp_path, "stated", body)])
    assert reason(stated).endswith("ValueError: /stated")


def test_who_takes_far_longer_than_others_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one is built: after 120 s where none is."""
    ask, built = Worker.ask, SimpleNamespace(kernels=())

    def load_built(folder: Path) -> Any:
        return built

    def build(self: Worker, request: Any, *limits: Any) -> dict[str, Any]:
        answer = ask(self, request, *limits)
        is_first = "builds.py" in str(answer["error"])
        return {"error": None, "is_lost": False} if is_first else answer

    monkeypatch.setattr(Worker, "ask", build)
    monkeypatch.setattr(compile_workers, "load_built", load_built)
    monkeypatch.setattr(compile_workers, "LEAST_PATIENCE", 1.0)
    # Also what it has started: as nvcc does, with a process of its own.
    hangs = "import subprocess; subprocess.run(['sh', '-c', 'while :; do :; done'])"
    jobs = [
        job(tmp_path, "builds", "raise ValueError"),
        job(tmp_path, "hangs", hangs),
        replace(job(tmp_path, "best", hangs), is_best=True),
    ]
    outcomes = compile_all(jobs, workers=3, seconds=60)
    assert outcomes[0].built is built
    hung, best = map(reason, outcomes[1:])
    assert hung == "compilation took more than 1 s of a core"
    assert best == "compilation took more than 2 s of a core"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    """Neither the process nor what it started outlives the time limit."""
    note = tmp_path / "pids"
    body = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(note)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )
    (outcome,) = compile_all([job(tmp_path, "hangs", body)], seconds=2)
    assert reason(outcome) == "compilation took more than 2 s"
    assert_gone(note)


def test_an_interruption_ends_the_processes(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    body = (
        f"import os, time; open({str(note)!r}, 'w').write(f'{{os.getpid()}}')\n"
        "time.sleep(600)"
    )

    def interrupt(outcome: CompileOutcome) -> None:
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    jobs = [job(tmp_path, "fails", "raise ValueError"), job(tmp_path, "hangs", body)]
    with pytest.raises(KeyboardInterrupt):
        compile_all(jobs, workers=2, done=interrupt)
    assert_gone(note)


def test_a_compiling_process_does_not_survive_its_parent(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    body = (
        f"import os, time; open({str(note)!r}, 'w').write(f'{{os.getpid()}}')\n"
        "time.sleep(600)"
    )
    hangs = job(tmp_path, "hangs", body)
    program = (
        "from pathlib import Path\n"
        "from cleave.lowering.compile_workers import CompileJob, compile_all\n"
        f"compile_all([CompileJob('x', Path({str(hangs.module)!r}), 'sm_90a', "
        f"Path({str(hangs.folder)!r}))])"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        parent.kill()
    assert_gone(note)


def test_no_jobs_no_processes() -> None:
    assert compile_all([]) == []


def test_a_process_builds_one_candidate_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes nothing to the home folder, and leaves nothing but what was built."""
    (tmp_path / "file").write_text("")
    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "file" / "no folder"))
    monkeypatch.delenv("TILELANG_CACHE_DIR", raising=False)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    jobs = [
        CompileJob(name, GENERATED / f"{name}.py", "sm_90a", tmp_path / name)
        for name in ("matmul", "chain_without_registers")
    ]
    outcomes = compile_all(jobs, workers=1)
    for outcome in outcomes:
        assert outcome.reason is None
        assert outcome.built is not None
        assert outcome.built.folder == outcome.job.folder
        (kernel,) = outcome.built.kernels
        assert [report.name for report in kernel.reports] == [kernel.function]
    # The second one finds TileLang imported.
    assert outcomes[1].seconds < outcomes[0].seconds
    assert list(temporary.iterdir()) == []


def assert_gone(note: Path) -> None:
    for pid in map(int, note.read_text().split()):
        for _ in range(200):
            try:
                os.kill(pid, 0)
                state = (
                    Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                )
            except (ProcessLookupError, FileNotFoundError):
                break
            # An orphan that nobody reaps here is dead all the same.
            if state == "Z":
                break
            time.sleep(0.01)
        else:
            pytest.fail(f"process {pid} still runs")


def test_a_kernel_that_tilelang_refuses_is_not_built_again(tmp_path: Path) -> None:
    """Under another name, with sizes that are called otherwise, in another plan."""
    first = job(tmp_path, "first", f"B = 32768\n{KERNEL.format('kernel_0', size='B')}")
    plan = PLAN["kernels"][0]
    other = {**PLAN, "kernels": [plan, {**plan, "function": "kernel_1"}]}
    text = (
        f"PLAN = {other!r}\nB = 16\nB_2 = 32768\n"
        f"{KERNEL.format('kernel_0', size='B')}{KERNEL.format('kernel_1', size='B_2')}"
    )
    second = CompileJob("second", tmp_path / "second.py", "sm_90a", tmp_path / "second")
    second.module.write_text(text)
    refused = RefusedKernels()
    refused.note(first.module, "TileLang refuses kernel_0: InternalError: lanes")
    (outcome,) = compile_all([second], refused=refused)
    assert reason(outcome) == "TileLang refuses kernel_1: InternalError: lanes"
    assert outcome.seconds == 0
    assert RefusedKernels().reason(second.module) is None
    # What is no fault of a kernel is no fault of the next plan.
    refused = RefusedKernels()
    refused.note(first.module, "took more than 120 s")
    assert refused.reason(first.module) is None


KERNEL = """
def {0}():
    @T.prim_func
    def kernel(a: T.Tensor(({size},), "float32"), b: T.Tensor(({size},), "float32")):
        with T.Kernel(1, threads=128) as i:
            T.copy(a[0:{size}], b[0:{size}])

    return kernel
"""


def test_a_defect_behind_a_thread_is_raised_and_nothing_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: Any) -> dict[str, Any]:
        raise KeyError("is_lost")

    monkeypatch.setattr(Worker, "ask", ask)
    jobs = [job(tmp_path, name, "") for name in ("first", "second")]
    with pytest.raises(KeyError, match="is_lost"):
        compile_all(jobs, workers=2)
