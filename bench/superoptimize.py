"""
Time the algebraic search on the examples, beside the paper's Table 1; one JSON file.

    python -m bench.superoptimize --out bench/results/superoptimize.json

Every search runs in a process of its own, after its imports. Seconds, by the wall clock
and of the CPU, which is what the table has because machines are shared, are from the
parsed graph to the candidates in IR, the second look at each included. The paper's
minutes are whole compilations (search, scheduling, NVCC) of all shapes on another
machine: they say what a user waits for, not how fast its search alone is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples"

PAPER: dict[str, tuple[int | None, int | None, int, int]] = {
    "matmul": (3, 180, 1, 13),
    "matmul_matmul": (10, 224, 2, 14),
    "matmul_rowsum": (4, 209, 5, 12),
    "swiglu": (11, None, 3, 12),
    "rmsnorm_matmul": (7, None, 2, 9),
    "mha": (None, 121, 3, 8),
    "gqa": (None, None, 3, 8),
    "mqa": (None, None, 3, 8),
    "mla_decode": (None, None, 3, 9),
}
"""
Minutes of Table 1 for the nine subgraphs: Mirage and the paper's Cleave, each without
and with Split-K; None where it found no valid code or ran out of memory.
"""

OTHERS = (
    "attention_softmax",
    "attention_causal_lse",
    "attention_qk_norm",
    "rmsnorm_swiglu",
    "swiglu_halves",
    "lora",
    "gated_mlp",
    "layernorm_matmul",
)
SPLITS = ("none", "inputs")


def measure(example: str, split: str) -> dict[str, Any]:
    """One search in this process."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin, ModuleOp
    from xdsl.parser import Parser

    from cleave.dialects.algebra import Algebra
    from cleave.dialects.algebra.graph import GraphOp
    from cleave.passes.superoptimize.superoptimize import SuperoptimizePass
    from cleave.tools.explain import search_summary

    for module_name in ("exporting", "search"):
        import_module(f"cleave.passes.superoptimize.{module_name}")
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(Algebra)
    text = (EXAMPLES / f"{example}.mlir").read_text()
    module: ModuleOp = Parser(ctx, text).parse_module()
    search = SuperoptimizePass(
        split="inputs" if split == "inputs" else "none", stats=True
    )
    started, cpu_started = time.perf_counter(), time.process_time()
    search.apply(ctx, module)
    seconds, cpu_seconds = (
        time.perf_counter() - started,
        time.process_time() - cpu_started,
    )
    original, *_ = (op for op in module.ops if isinstance(op, GraphOp))
    operators = sum(1 for op in original.operators if op.operands and not op.IS_VIEW)
    return {
        "example": example,
        "split": split,
        "operators": operators,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **search_summary(original),
    }


def measure_apart(example: str, split: str, runs: int) -> dict[str, Any]:
    """The run of median time among several, each in a fresh process."""
    results: list[dict[str, Any]] = []
    for _ in range(runs):
        command = [sys.executable, "-m", "bench.superoptimize", "--one", example, split]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results.append(json.loads(done.stdout))
    middle = median(result["seconds"] for result in results)
    return min(results, key=lambda result: abs(result["seconds"] - middle))


def environment() -> dict[str, Any]:
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "command": "python -m bench.superoptimize",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def totals(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Wall and CPU seconds of the nine subgraphs together, the largest of all rows."""
    result: dict[str, float] = {}
    for split, word in zip(SPLITS, ("off", "on"), strict=True):
        nine = [r for r in rows if r["example"] in PAPER and r["split"] == split]
        for clock in ("seconds", "cpu_seconds"):
            result[f"nine_split_{word}_{clock}"] = sum(row[clock] for row in nine)
    return result | {
        "slowest_seconds": max(row["seconds"] for row in rows),
        "slowest_cpu_seconds": max(row["cpu_seconds"] for row in rows),
        "all_cpu_seconds": sum(row["cpu_seconds"] for row in rows),
        "largest_rss_mib": max(row["rss_mib"] for row in rows),
    }


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """The table that stands in passes/superoptimize/README.md."""
    lines = [
        "| subgraph | n | values | graphs | CPU s | split: values | graphs | CPU s "
        "| paper off / on, min | Mirage off / on, min |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    by_key = {(row["example"], row["split"]): row for row in rows}
    for example in (*PAPER, *OTHERS):
        cells = [example, str(by_key[example, "none"]["operators"])]
        for split in SPLITS:
            row = by_key[example, split]
            values = row["statistics"]["values"]
            cells += [
                f"{values:,}",
                str(row["candidates"]),
                f"{row['cpu_seconds']:.2f}",
            ]
        if example in PAPER:
            off, on, ours_off, ours_on = PAPER[example]
            cells += [f"{ours_off} / {ours_on}", f"{off or '-'} / {on or '-'}"]
        else:
            cells += ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("EXAMPLE", "SPLIT"))
    parser.add_argument(
        "--runs", type=int, default=3, help="take the median of so many"
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one)))
        return
    rows = [
        measure_apart(example, split, args.runs)
        for example in (*PAPER, *OTHERS)
        for split in SPLITS
    ]
    result = environment() | {"totals": totals(rows), "rows": rows}
    print(as_markdown(rows))
    print(json.dumps(result["totals"], indent=2))
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
