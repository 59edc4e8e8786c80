"""
Time the search for plans, phase by phase; one JSON file.

    python -m bench.search_time --out bench/results/search_time.json

Rows are those of the paper's tables that `bench.subgraphs` measures, and other examples
at the sizes that they have. A search is what `cleave compile` does at its normal effort
between the parsed graph and the source of the plans to build. Each runs in a process of
its own, on one core, after its imports. Seconds are of the CPU, for machines are
shared; `first` is the plan that the cost model ranks first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import machine, write_json
from bench.subgraphs import EXAMPLES, all_rows, graph_of
from bench.superoptimize import environment
from cleave.dialects.algebra.graph import GraphOp
from cleave.tools.graph_file import parse_graph

OTHERS = (
    "attention_softmax",
    "attention_causal",
    "attention_causal_lse",
    "attention_softcap",
    "attention_qk_norm",
    "gated_mlp",
    "layernorm_matmul",
    "lora",
    "rmsnorm_swiglu",
)
LIMIT = 2.0
"""CPU seconds that the search of a row of the paper's tables may take."""
IMPORTED_LATE = (
    "cleave.dialects.dim_algebra",
    "cleave.lowering.numpy_algebra",
    "cleave.passes.superoptimize.equivalence",
    "cleave.passes.superoptimize.exporting",
    "cleave.passes.superoptimize.promising",
    "cleave.passes.superoptimize.search",
    "networkx",
    "numpy.random",
    "sympy.tensor.tensor",
    "xdsl.transforms.dead_code_elimination",
)
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB")
}


def titles() -> list[str]:
    """What is searched: rows of the tables, then examples."""
    return [*(row.title for row in all_rows()), *OTHERS]


def measure(title: str) -> dict[str, Any]:
    """One search in this process. Raises RuntimeError if something is imported then."""
    from cleave.lowering.hardware import load_hardware
    from cleave.lowering.search.candidates import find_candidates
    from cleave.lowering.search.compiling import symbolized
    from cleave.lowering.search.effort import DEFAULT_EFFORT, EFFORTS, Ablation

    for name in IMPORTED_LATE:
        import_module(name)
    graph, hardware = _graph(title), load_hardware("h200")
    imported = set(sys.modules)
    marks: list[tuple[str, float]] = []

    def progress(phase: str) -> None:
        marks.append((phase, time.process_time()))

    progress("make sizes symbols")
    found = find_candidates(
        symbolized(graph),
        EFFORTS[DEFAULT_EFFORT],
        hardware,
        Ablation(),
        False,
        progress,
    )
    progress("")
    if late := set(sys.modules) - imported:
        raise RuntimeError(f"{title}: imported while searching: {sorted(late)}")
    first, *_ = found.plans
    return {
        "row": title,
        "seconds": marks[-1][1] - marks[0][1],
        "phases": {phase: end - start for (phase, start), (_, end) in pairwise(marks)},
        "graphs": found.graphs,
        "evaluated": found.pruned.evaluated,
        "first": {"predicted_ms": first.predicted_ms, "schedules": [*first.schedules]},
    }


def _graph(title: str) -> GraphOp:
    for row in all_rows():
        if row.title == title:
            return graph_of(row)
    return parse_graph((EXAMPLES / f"{title}.mlir").read_bytes(), title)


def measure_apart(title: str, runs: int) -> dict[str, Any]:
    """The run of median time among several, each in a fresh process."""
    command = [sys.executable, "-m", "bench.search_time", "--one", title]
    environment = os.environ | ONE_THREAD
    results: list[dict[str, Any]] = []
    for _ in range(runs):
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        results.append(json.loads(done.stdout))
    middle = median(result["seconds"] for result in results)
    return min(results, key=lambda result: abs(result["seconds"] - middle))


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The slowest row of the tables, which of them exceed the limit, and the others."""
    of_tables = {row.title for row in all_rows()}
    slowest: dict[str, dict[str, Any]] = {}
    for row in rows:
        kind = "tables" if row["row"] in of_tables else "others"
        if kind not in slowest or slowest[kind]["seconds"] < row["seconds"]:
            slowest[kind] = {"row": row["row"], "seconds": row["seconds"]}
    return {
        "limit_seconds": LIMIT,
        "above_limit": [
            row["row"]
            for row in rows
            if row["row"] in of_tables and row["seconds"] > LIMIT
        ],
        "slowest": slowest,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if the search of each row of the tables keeps the limit, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.search_time")
    parser.add_argument("--one", metavar="ROW", help="time one search in this process")
    parser.add_argument("--only", default="", help="rows whose title has this")
    parser.add_argument(
        "--runs", type=int, default=3, help="take the median of so many"
    )
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one)))
        return 0
    host = environment()
    result = {
        "cpu": host["cpu"],
        "cores": host["cores"],
        **machine("bench.search_time"),
    }
    rows: list[dict[str, Any]] = []
    for title in titles():
        if re.search(options.only, title):
            rows.append(measure_apart(title, options.runs))
            print(line(rows[-1]), flush=True)
            if options.out is not None:
                found = {"summary": summary(rows), "rows": rows}
                write_json(options.out, result | found)
    print(json.dumps(summary(rows), indent=1))
    return 1 if summary(rows)["above_limit"] else 0


def line(row: dict[str, Any]) -> str:
    phases = ", ".join(f"{name} {s:.2f}" for name, s in row["phases"].items())
    return f"{row['row']:48} {row['seconds']:6.2f} s: {phases}"


if __name__ == "__main__":
    raise SystemExit(main())
