"""What README.md shows of commands and of code is real."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess
from textwrap import dedent
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation import place
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compile_workers import CompileJob, CompileOutcome
from cleave.lowering.search import tuning
from cleave.lowering.search.lines import search_lines
from cleave.lowering.search.request import Request, compile_request
from cleave.lowering.toolchain import find_nvcc

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks() -> Iterator[str]:
    """The text of each indented block."""
    for block in re.findall(r"(?:^    .*\n(?:\s*\n(?=    ))?)+", README, re.MULTILINE):
        yield dedent(block)


GRAPH = next(block for block in blocks() if block.startswith("algebra.graph @tour"))
COMMANDS = dict(
    block[2:].split("\n", 1)
    for block in blocks()
    if block.startswith("$ cleave-opt tour.mlir")
)


def matches(shown: str, printed: str) -> bool:
    """Whether text is what is shown, where a line `...` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
        for line in shown.strip("\n").split("\n")
    )
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_output_is_what_the_command_prints(
    command: str, cleave_opt: Callable[..., CompletedProcess[str]]
) -> None:
    outcome = cleave_opt(GRAPH, *shlex.split(command)[2:])
    assert matches(COMMANDS[command], outcome.stdout or outcome.stderr)


def test_every_step_of_the_tour_is_tried() -> None:
    assert len(COMMANDS) == 6


def test_an_output_with_another_line_does_not_match() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a\n...\nd\n", "a\nb\nc\ne\n")
    assert not matches("a\nd\n", "a\nb\nd\n")


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_the_report_shown_is_one(
    example_graph: Callable[..., GraphOp],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """But for what is found, and for what nvcc says of the kernel."""
    pytest.importorskip("tilelang")

    def compile_all(jobs: Sequence[CompileJob], **_: Any) -> list[CompileOutcome]:
        return [CompileOutcome(job, fake_build(job.folder), None, 0.0) for job in jobs]

    def legality(_: object) -> list[str]:
        return []

    def fake_build(folder: Path) -> Any:
        return SimpleNamespace(folder=folder, legality=legality, kernels=())

    monkeypatch.setattr(tuning, "compile_all", compile_all)
    monkeypatch.setattr(place, "visible_device", no_device)
    request = Request(effort="quick", use_cache=False)
    graph = example_graph("attention_softmax")
    report = compile_request(graph, request, out_dir=tmp_path).report
    printed = {without_findings(f"{w:10}{text}") for w, text in search_lines(report)}
    (sample,) = (
        block for block in blocks() if block.startswith("graph     @attention")
    )
    *shown, rest = sample.strip("\n").split("\n")
    assert rest == "..."
    assert {without_findings(line) for line in shown} - printed == {
        without_findings(line) for line in shown if line.startswith("kernel ")
    }


def no_device() -> NoReturn:
    raise NoDeviceError("no CUDA device: there is no NVIDIA driver")


def without_findings(line: str) -> str:
    """A line without numbers and names, which change with the search."""
    line = re.sub(r"(schedules?: )\w.*", r"\1RULE", re.sub(r"@\w+", "@NAME", line))
    return re.sub(r"\d[\d,.]*", "N", line)


def test_the_operator_shown_is_that_of_the_dialect() -> None:
    (entry,) = (block for block in blocks() if "class Softplus" in block)
    source = ROOT / "cleave_dialects/algebra/elementwise.py"
    assert f"\n{entry}\n" in source.read_text()


def test_what_is_said_to_be_in_a_module_is_there() -> None:
    named = re.findall(r"`(\w+)`\s+in\s+`(cleave[\w.]*)`", README)
    assert len(named) == 2
    for name, module in named:
        assert hasattr(import_module(module), name), f"{module} has no {name}"
