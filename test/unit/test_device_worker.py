"""
Candidates that fault, hang or end their process, on a GPU that is none: a module that
the process runs in the place of PyTorch. Real faults need a GPU (test/gpu).
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.accuracy import DRAWINGS, NumericCheck
from cleave.lowering.compilation.device import Device, NoDeviceError
from cleave.lowering.compilation.device_worker import CandidateError, DeviceWorker
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import load_hardware

GPU = '''
import os, sys, time
from cleave.lowering.compilation.accuracy import DRAWINGS, NumericCheck
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compilation.device_process import DeviceProcess
from cleave.lowering.serving import serve

class Gpu:
    """Does to each candidate what the name of its folder says."""

    is_lost = False

    def prepare(self, graph, number):
        open(os.environ["STARTS"], "a").write(f"{os.getpid()}\\n")
        assert graph.startswith("algebra.graph @matmul"), graph
        assert number == 3
        {prepare}

    def check(self, folder):
        self._run(folder.name, "check")
        return NumericCheck("device", {"M": 4}, DRAWINGS[1], [0.5], [1.0], ["off"])

    def measure(self, folders, repeats, note):
        for repeat in range(repeats):
            for name, folder in folders.items():
                note(name)
                self._run(folder.name, "measure")
        return {name: 2.0 for name in folders}

    def works(self):
        return not self.is_lost

    def _run(self, does, when):
        print("noise of a compiler")
        if does == f"dies in {when}":
            print("an illegal address", file=sys.stderr)
            os.abort()
        if does == f"hangs in {when}":
            time.sleep(600)
        if does == f"faults in {when}":
            self.is_lost = True
            raise RuntimeError("CUDA error: illegal instruction\\nand more")
        if does == f"starves in {when}":
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        if does == f"refuses in {when}":
            raise ValueError("it changed its argument x")
        if self.is_lost:
            raise AssertionError("a lost context is used")

raise SystemExit(serve(DeviceProcess(Gpu())))
'''

DOES = ("works", "dies", "starves", "refuses", "hangs", "faults", "works again")
Start = Callable[..., DeviceWorker]


@pytest.fixture
def start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    example_graph: Callable[..., GraphOp],
) -> Start:
    """`start(prepare="...")` is a worker whose GPU prepares a graph by this code."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    device = Device(3, "GPU", load_hardware("h200"))

    def worker(prepare: str = "pass", run_seconds: float = 0.6) -> DeviceWorker:
        (tmp_path / "some_gpu.py").write_text(GPU.replace("{prepare}", prepare))
        return DeviceWorker(example_graph("matmul"), device, "some_gpu", run_seconds)

    return worker


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text().splitlines())


def test_a_candidate_that_faults_is_rejected_and_others_go_on(
    start: Start, tmp_path: Path
) -> None:
    found: dict[str, NumericCheck | str] = {}
    lost: list[str] = []
    with start() as worker:
        for does in DOES:
            try:
                found[does] = worker.check(Path(f"{does} in check"))
            except CandidateError as error:
                found[does] = str(error)
                lost += [does] if error.is_lost else []
    assert lost == ["dies", "starves", "hangs"]
    right = NumericCheck("device", {"M": 4}, DRAWINGS[1], [0.5], [1.0], ["off"])
    assert found == {
        "works": right,
        "dies": "does not run: a run died (SIGABRT; an illegal address)",
        "starves": "does not run: CUDA out of memory. Tried to allocate 2.00 GiB",
        "refuses": "does not run: it changed its argument x",
        "hangs": "does not run: a run took more than 0.6 s",
        "faults": "does not run: CUDA error: illegal instruction",
        "works again": right,
    }
    assert starts(tmp_path) == 4


def test_what_faults_when_it_is_timed_is_left_out(start: Start, tmp_path: Path) -> None:
    kinds = {"0": "works", "1": "dies", "2": "refuses", "3": "hangs", "4": "works"}
    folders = {name: Path(f"{does} in measure") for name, does in kinds.items()}
    with start() as worker:
        found = worker.measure(folders, 2)
    assert found.times == {"0": 2.0, "4": 2.0}
    rejected = {name: (str(e), e.is_lost) for name, e in found.rejected.items()}
    assert rejected == {
        "1": ("cannot be timed: a sample died (SIGABRT; an illegal address)", True),
        "2": ("cannot be timed: it changed its argument x", False),
        "3": ("cannot be timed: a sample took more than 0.6 s", True),
    }
    assert starts(tmp_path) == 3


def test_an_interruption_leaves_no_process(start: Start, tmp_path: Path) -> None:
    def interrupted() -> None:
        with start() as worker:
            worker.check(Path("works"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    pid = int((tmp_path / "starts").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_notes_let_time_start_anew(start: Start) -> None:
    """Each sample is short, all together take longer than one may."""
    with start("self._run = lambda *_: time.sleep(0.2)", run_seconds=0.5) as worker:
        found = worker.measure({"a": Path("a"), "b": Path("b")}, 2)
    assert found.times == {"a": 2.0, "b": 2.0}


@pytest.mark.parametrize(
    ("prepare", "error", "message"),
    [
        ("raise NoDeviceError('no CUDA')", NoDeviceError, "^no CUDA$"),
        ("raise ValueError('@g: no memory')", CompilationError, "^@g: no memory$"),
        ("os._exit(3)", CompilationError, r"^@matmul: the reference died \(exit stat"),
    ],
)
def test_a_graph_that_cannot_be_prepared(
    prepare: str, error: type[Exception], message: str, start: Start
) -> None:
    with start(prepare) as worker, pytest.raises(error, match=message):
        worker.check(Path("works"))


def test_a_fault_of_no_candidate_ends_the_timing(start: Start) -> None:
    prepare = "self.measure = lambda *_: os.abort()"
    with (
        start(prepare) as worker,
        pytest.raises(CompilationError, match=r"^plans cannot be timed: a sample died"),
    ):
        worker.measure({"a": Path("a")}, 1)


def test_checks_are_plain_data() -> None:
    check = NumericCheck(
        "device", {"M": 4}, DRAWINGS[9], [float("inf")], [0.25], ["off"]
    )
    assert NumericCheck.parse(json.loads(json.dumps(check.literal()))) == check
