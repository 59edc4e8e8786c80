"""
Graphs that the paper does not have, each by `cleave compile`; one JSON file.

    python -m bench.other_graphs --out bench/results/other_graphs.json

Several compile at a time, so that their times tell a slow plan from a fast one, but are
no benchmarks. With a GPU each is checked there against float64.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.graph_text import with_sizes
from bench.machine import machine, write_json

ROOT = Path(__file__).parents[1]
KEPT = (
    *("checked", "max_error", "allowed_error", "predicted_ms", "measured_ms"),
    *("unfused_ms", "floor_ms", "candidates", "chosen", "chosen_graphs", "notes"),
)


@dataclass(frozen=True)
class Case:
    """A graph of this repository, with sizes."""

    name: str
    file: str
    sizes: Mapping[str, int]

    @property
    def text(self) -> str:
        """The graph, its facts replaced by the sizes."""
        source = (ROOT / self.file).read_text(encoding="utf-8")
        return with_sizes(source, self.sizes)


def _sizes(text: str) -> dict[str, int]:
    return {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", text)}


ATTENTION = "examples/attention_softmax.mlir"
CASES: tuple[Case, ...] = (
    *(
        Case(name, file, _sizes(sizes))
        for name, file, sizes in (
            ("gated MLP", "examples/gated_mlp.mlir", "M=512 K=2048 N=4096 O=2048"),
            ("LoRA", "examples/lora.mlir", "M=2048 K=4096 N=4096 R=16"),
            ("QK-norm", "examples/attention_qk_norm.mlir", "H=16 M=1024 L=1024 D=128"),
            (
                "attention and projection",
                "test/graphs/attention_projection.mlir",
                "H=16 M=512 L=1024 D=64 N=1024",
            ),
            (
                "SwiGLU and projection",
                "test/graphs/chained_swiglu.mlir",
                "M=512 K=1024 N=2048 P=1024",
            ),
            (
                "RMSNorm and SwiGLU",
                "examples/rmsnorm_swiglu.mlir",
                "M=512 K=2048 N=4096",
            ),
            ("softmax", "examples/softmax.mlir", "M=4099 N=4231"),
            ("row sum", "test/graphs/row_sum.mlir", "M=4099 K=1023"),
            ("elementwise", "test/graphs/elementwise_chain.mlir", "A=31 B=341 C=1023"),
            ("GroupNorm", "test/graphs/group_norm.mlir", "B=8 G=32 C=16 P=1024"),
            ("odd MatMul", "examples/matmul.mlir", "M=1023 K=4231 N=341"),
            ("odd SwiGLU", "examples/swiglu.mlir", "M=341 K=1023 N=4099"),
            ("odd attention", ATTENTION, "H=3 M=1023 L=4099 D=96"),
            ("vision attention", ATTENTION, "H=16 M=577 L=577 D=64"),
            ("odd head dim", ATTENTION, "H=3 M=341 L=1023 D=57"),
            ("odd decode attention", ATTENTION, "H=32 M=1 L=4099 D=128"),
            ("odd softmax", "examples/softmax.mlir", "M=1023 N=4099"),
        )
    ),
    *(
        Case(f"attention d={d}", ATTENTION, {"H": 8, "M": 1024, "L": 1024, "D": d})
        for d in (56, 72, 80, 96, 192, 256)
    ),
)


def compiled(case: Case, effort: str) -> dict[str, Any]:
    """What `cleave compile` says of a case."""
    command = [sys.executable, "-m", "cleave.tools.main", "compile", "-", "--json"]
    command += ["--no-cache", "--effort", effort]
    started = time.perf_counter()
    done = subprocess.run(command, input=case.text, capture_output=True, text=True)
    row: dict[str, Any] = {
        "name": case.name,
        "file": case.file,
        "sizes": dict(case.sizes),
        "exit_code": done.returncode,
        "seconds": round(time.perf_counter() - started, 1),
    }
    if done.returncode:
        return row | {"message": done.stderr.strip()}
    report = json.loads(done.stdout)
    trials: list[dict[str, Any]] = report["trials"]
    rejected = [trial["reason"] for trial in trials if trial["reason"]]
    return row | {key: report[key] for key in KEPT} | {"rejected": rejected}


def line(row: Mapping[str, Any]) -> str:
    if row["exit_code"]:
        return f"{row['name']:26} {row['message']}"
    ms = row["measured_ms"]
    found = f"{ms * 1e3:9.1f} us" if ms is not None else " not timed"
    error, seconds = row["max_error"], row["seconds"]
    return f"{row['name']:26} {found}, error {error:.1e}, in {seconds:5.1f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.other_graphs", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--together", type=int, default=3, help="compile so many")
    options = parser.parse_args(arguments)

    result = machine("bench.other_graphs")
    cases = [case for case in CASES if re.search(options.only, case.name)]
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(options.together) as pool:
        for row in pool.map(partial(compiled, effort=options.effort), cases):
            print(line(row), flush=True)
            rows.append(row)
            write_json(options.out, result | {"rows": rows})
    return int(any(row["exit_code"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
