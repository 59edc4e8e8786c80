"""The report of a search: JSON and back, lines for people, and a page."""

import errno
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from cleave.lowering.report_page.page import LONGEST, html
from cleave.lowering.search.folder import copy_files, write_folder
from cleave.lowering.search.lines import search_lines
from cleave.lowering.search.page import search_page
from cleave.lowering.search.report import SearchReport, TrialReport
from cleave.tools.errors import message
from cleave.tools.progress import Display

TRIAL = TrialReport(0, "g_2", ["tile M=64 <fast>"], 0.5, 0.4, 0.25, None, False)
OUT = TrialReport(
    1, "g_unfused", ["tile M=32"], 0.75, None, None, "wrong <numbers>", True, True
)
COSTS = [
    {
        "kernel": "kernel_0",
        "predicted_ms": 0.2,
        "bound_by": "tensor cores",
        "alone_ms": {"tensor cores": 0.1, "GMEM": 0.0625},
        "uneven_ms": 0.03125,
        "grid": {
            "tiles": 512,
            "threadblocks": 132,
            "blocks_per_multiprocessor": 1,
            "waves": 512 / 132,
        },
    },
    {
        "kernel": "kernel_1",
        "predicted_ms": 0.1,
        "bound_by": "GMEM",
        "alone_ms": {"GMEM": 0.09, "L2": 0.011},
        "uneven_ms": 0.0,
        "grid": {
            "tiles": 1,
            "threadblocks": 1,
            "blocks_per_multiprocessor": 2,
            "waves": 1 / 264,
        },
    },
    {
        "kernel": "cuBLAS",
        "predicted_ms": 0.075,
        "bound_by": "GMEM",
        "alone_ms": {"GMEM": 0.075},
        "uneven_ms": 0.0,
        "grid": None,
    },
]
REPORT = SearchReport(
    graph="g",
    sizes={"M": 4},
    effort="quick",
    hardware={"name": "NVIDIA H200", "arch": "sm_90a"},
    device="NVIDIA H200",
    chosen=["tile M=64 <fast>"],
    chosen_graphs=["algebra.graph"],
    chosen_number=0,
    kernels=[],
    faults=["it spills"],
    checked="device",
    checked_sizes={"M": 2},
    max_error=0.25,
    allowed_error=0.5,
    predicted_ms=0.5,
    launch_ms=0.125,
    costs=COSTS,
    measured_ms=0.4,
    not_measured=None,
    unfused_ms=0.8,
    floor_ms=0.2,
    candidates=2,
    evaluated=1234,
    pruned={"too little SMEM": 12, **{f"rule {n}": n for n in range(1, 7)}},
    trials=[TRIAL, OUT],
    notes=["a note"],
    versions={"cleave": "1"},
    seconds={"search": 1.0, "check": 0.0123},
)
PLAN = """itgraph.plan @g {
  %0 = itgraph.kernel (i_M = 0 to M)
      ins (%x_1 = %x[0] tile [<b>])
  }
  %1 = itgraph.library_matmul %0, %w to f16
"""


def test_json_and_back() -> None:
    assert SearchReport.of_json(REPORT.json()).json() == REPORT.json()
    with pytest.raises(TypeError):
        SearchReport.of_json({"trials": []})


def test_each_plan_has_a_fate() -> None:
    slower = replace(TRIAL, number=2, measured_ms=0.6)
    untried = replace(TRIAL, number=3, measured_ms=None)
    report = replace(REPORT, trials=[TRIAL, OUT, slower, untried])
    assert [report.fate(trial) for trial in report.trials] == [
        "chosen",
        "wrong <numbers>",
        "50% slower",
        "not tried: no faster by the model",
    ]


def test_a_long_stage_is_in_its_file_only() -> None:
    shown = search_page(REPORT, {})
    page = html(shown, {"input": "x" * (LONGEST + 1), "plan-memory": PLAN}, "")
    assert "in the file\n  00_input.mlir" in page
    assert "xx" not in page


def test_an_unfused_plan_that_wins_is_labelled() -> None:
    trials = [replace(TRIAL, is_unfused=True), OUT]
    lines = dict(search_lines(replace(REPORT, trials=trials, unfused_ms=0.4)))
    assert lines["measured"] == "400.0 us: the unfused plan, and nothing is faster"


def test_lines() -> None:
    assert list(search_lines(REPORT)) == [
        ("graph", "@g with M = 4"),
        ("GPU", "NVIDIA H200"),
        (
            "searched",
            "2 candidates, 1,234 schedules, 2 plans, 1 measured",
        ),
        ("chosen", "@g_2"),
        ("", "tile M=64 <fast>"),
        ("fault", "it spills"),
        (
            "checked",
            "on the GPU with M = 2: relative error 0.25 to float64, allowed 0.5",
        ),
        ("predicted", "500.0 us, 125.0 us of it for launches"),
        (
            "bound",
            "kernel_0: by tensor cores, 100.0 us of 200.0 us; "
            "512 tiles by 132 threadblocks in 3.88 waves",
        ),
        (
            "",
            "kernel_1: by GMEM, 90.00 us of 100.0 us; "
            "1 threadblock in 0.00379 waves, 2 a multiprocessor",
        ),
        ("", "cuBLAS: by GMEM, 75.00 us of 75.00 us"),
        ("measured", "400.0 us, unfused 800.0 us"),
        ("floor", "200.0 us; measured is 2 times that"),
        (
            "rejected",
            "1 plan (@g_unfused with cuBLAS; predicted 750.0 us): wrong <numbers>",
        ),
        ("left out", "12 schedules: too little SMEM"),
        ("", "6 schedules: rule 6"),
        ("", "5 schedules: rule 5"),
        ("", "4 schedules: rule 4"),
        ("", "3 schedules: rule 3"),
        ("", "3 for 2 more reasons"),
        ("note", "a note"),
        ("took", "search 1.0 s, check 12 ms"),
    ]


def test_rejected_plans_are_told_apart_and_say_how_fast_they_may_be() -> None:
    refused = "calls a library"
    by_library = replace(OUT, graph="g_2", predicted_ms=0.25, reason=refused)
    other = replace(by_library, graph="g_3", predicted_ms=0.125)
    unpredicted = replace(OUT, predicted_ms=None, calls_library=False)
    report = replace(REPORT, trials=[TRIAL, by_library, other, unpredicted])
    lines = [text for _, text in search_lines(report)]
    assert (
        "2 plans (@g_2 with cuBLAS, @g_3 with cuBLAS; predicted from 125.0 us): "
        "calls a library"
    ) in lines
    assert "1 plan (@g_unfused): wrong <numbers>" in lines


@pytest.mark.parametrize(
    ("floor_ms", "measured_ms", "text"),
    [
        (0.4, None, "400.0 us; predicted is 1.25 times that"),
        (0.4, 0.1, "400.0 us; measured is 0.25 times that"),
        (0.02, None, "20.00 us; predicted is 25 times that"),
        (1.395e-9, None, "less than 1 ns; predicted is over 1,000 times that"),
        (0.0, None, "0 us"),
    ],
)
def test_the_floor_is_readable(
    floor_ms: float, measured_ms: float | None, text: str
) -> None:
    report = replace(REPORT, floor_ms=floor_ms, measured_ms=measured_ms)
    assert dict(search_lines(report))["floor"] == text


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_all_texts_escaped() -> None:
    stages = {"input": "algebra.graph <i>", "select-schedules": PLAN}
    page = Texts()
    pictures = {"@<u>": "<svg><rect/></svg>"}
    shown = search_page(REPORT, pictures)
    page.feed(html(shown, stages, "def kernel(): a < <script>"))
    for text in (
        "tile M=64 <fast>",
        "wrong <numbers>",
        "algebra.graph <i>",
        "a < <script>",
        "threadblocks over i_M = 0 to M",
        "library call matmul %0, %w to f16",
        "tile [<b>]",
        "it spills",
        "@g_2",
        "@<u>",
        "500.0 us",
        "512 tiles by 132 threadblocks in 3.88 waves",
        "62.50 us",
        "11.00 us",
    ):
        assert text in page.text
    assert not {"fast", "numbers", "i", "b", "u", "script"} & page.tags
    assert {"table", "pre", "div", "rect"} <= page.tags


def test_a_folder_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(shutil, "copy", full)
    for write in (
        lambda: write_folder(tmp_path, {"input": "g"}, "source", REPORT, {}),
        lambda: copy_files(Path(__file__).parent, tmp_path),
    ):
        with pytest.raises(OSError, match="No space") as caught:
            write()
        assert message(caught.value) == f"error: {tmp_path}: No space left on device"


def test_the_display_keeps_phases_in_order() -> None:
    display = Display()
    for step in ("search", "build: 0 of 2", "build: 1 of 2", "check: plan 0"):
        display.step(step)
    console = Console(width=80, record=True)
    console.print(display)
    lines = console.export_text().splitlines()
    assert [line.split(" s  ")[1].strip() for line in lines] == [
        "search",
        "build",
        "check  plan 0",
    ]
