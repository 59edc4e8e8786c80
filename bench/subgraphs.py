"""
Search, build, check and time every row of the paper's Tables 3 and 4; one JSON file.

    python -m bench.subgraphs --out bench/results/subgraphs.json

Each row has the plans that `cleave compile` would measure, with what the cost model
says about each, timed side by side and with the row's peers. `rows` of the file are
plans; `summary` has the fastest plan of each row, where the model ranked it, and the
rank correlation (Spearman) of predicted and measured times.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import re
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import correlation
from typing import Any

from bench.entry import Entry
from bench.foundations import build, measure_all
from bench.graph_text import with_sizes
from bench.machine import machine, write_json
from bench.shapes import Row, decode_rows, prefill_rows
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.lowering.search.candidates import find_candidates
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.tools.graph_file import parse_graph

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Searched:
    """What the search gave for a row: a module for each plan, and the prediction."""

    row: Row
    modules: Sequence[Path]
    predicted_ms: Sequence[float]
    unfused: Sequence[bool]
    calls_library: Sequence[bool]
    """Which plans are not all ours, and so cannot win."""
    seconds: float
    failure: str | None = None


def all_rows() -> list[Row]:
    """Prefill with 512 and 4096 rows, decode with 16 and 64, and all of MLA decode."""
    return [*prefill_rows((512, 4096)), *decode_rows((16, 64))]


def graph_of(row: Row) -> GraphOp:
    """The graph of a row, its sizes bound."""
    text = (EXAMPLES / f"{row.subgraph}.mlir").read_text(encoding="utf-8")
    return parse_graph(with_sizes(text, row.sizes).encode(), row.title)


def search(
    row: Row,
    folder: Path,
    hardware: Hardware,
    plans: int,
    ablation: Ablation | None = None,
    label: str = "",
) -> Searched:
    """
    The plans of a row, the best by the model first; runs in a process of its own.
    `label` becomes a part of the names of their modules, in `folder`.
    """
    graph = symbolized(graph_of(row))
    effort = dataclasses.replace(EFFORTS["normal"], plans=plans)
    start = time.perf_counter()
    try:
        found = find_candidates(
            graph, effort, hardware, ablation or Ablation(), False, lambda _: None
        )
    except CompilationError as error:
        seconds = time.perf_counter() - start
        return Searched(row, [], [], [], [], seconds, str(error))
    seconds = time.perf_counter() - start
    stem = re.sub(r"\W+", "_", f"{row.title} {label}".strip())
    modules = [folder / f"{stem}_{n:02}.py" for n in range(len(found.plans))]
    for module, plan in zip(modules, found.plans, strict=True):
        module.write_text(plan.source, encoding="utf-8")
    return Searched(
        row,
        modules,
        [plan.predicted_ms for plan in found.plans],
        [plan.is_unfused for plan in found.plans],
        [plan.calls_library for plan in found.plans],
        seconds,
    )


def literal(searched: Searched, entries: Sequence[Entry]) -> dict[str, Any]:
    """The line of the summary for a row, whose plans are `entries`."""
    timed = [(n, e, e.timing.median_ms) for n, e in enumerate(entries) if e.timing]
    line: dict[str, Any] = {
        "row": searched.row.title,
        "search_seconds": searched.seconds,
        "plans": len(entries),
        "timed": len(timed),
        "failure": searched.failure,
    }
    unfused = [ms for n, _, ms in timed if searched.unfused[n]]
    line["unfused_ms"] = min(unfused, default=None)
    ours = [n for n in range(len(entries)) if not searched.calls_library[n]]
    timed = [found for found in timed if found[0] in ours]
    if not timed:
        return line
    number, best, best_ms = min(timed, key=lambda found: found[2])
    return line | {
        "best": best.name,
        "best_ms": best_ms,
        "best_peer": best.best_peer,
        "ratio": best.ratio,
        "rank_of_best": ours.index(number),
        "rank_correlation": _rank_correlation(
            [searched.predicted_ms[n] for n, _, _ in timed], [ms for _, _, ms in timed]
        ),
    }


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    ranks = [_ranks(values) for values in (a, b)]
    if any(len(set(each)) < 2 for each in ranks):
        return None
    return correlation(*ranks)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 0, equal values with the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    first = 0
    for _, group in itertools.groupby(order, values.__getitem__):
        places = list(group)
        for place in places:
            ranks[place] = first + (len(places) - 1) / 2
        first += len(places)
    return ranks


def parser_of(module: str, plans: int, repeats: int) -> argparse.ArgumentParser:
    """What a benchmark of rows is told, with its defaults."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--only", default="", help="rows whose title has this")
    parser.add_argument("--plans", type=int, default=plans, help="plans of each search")
    parser.add_argument("--hardware", default="h200", help="what to build for")
    parser.add_argument(
        "--repeats", type=int, default=repeats, help="samples a contender"
    )
    parser.add_argument("--workers", type=int, help="processes that search and build")
    return parser


def rows_with(title: str) -> list[Row]:
    """The rows in whose title this regular expression is found."""
    return [row for row in all_rows() if re.search(title, row.title)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if each row has a plan that is right, 1 otherwise."""
    import torch

    parser = parser_of("bench.subgraphs", EFFORTS["normal"].plans, repeats=40)
    options = parser.parse_args(arguments)

    hardware = load_hardware(options.hardware)
    result = machine("bench.subgraphs")
    rows = rows_with(options.only)
    with tempfile.TemporaryDirectory(prefix="cleave-bench-") as name:
        folder = Path(name)
        task = partial(search, folder=folder, hardware=hardware, plans=options.plans)
        with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
            found = list(pool.map(task, rows))
        plans = [
            [
                Entry(module, s.row, predicted_ms=ms)
                for module, ms in zip(s.modules, s.predicted_ms, strict=True)
            ]
            for s in found
        ]
        entries = list(itertools.chain(*plans))

        def save() -> None:
            summary = [literal(s, of) for s, of in zip(found, plans, strict=True)]
            lines = [entry.literal(hardware) for entry in entries]
            write_json(options.out, result | {"summary": summary, "rows": lines})

        build(entries, folder, hardware, workers=options.workers)
        save()
        if torch.cuda.is_available():
            measure_all(entries, save, repeats=options.repeats, seed=0, with_peers=True)
        else:
            print("no CUDA device: searched and built, not run")
    legal = [any(entry.built and not entry.reasons for entry in of) for of in plans]
    return 0 if all(legal) else 1


if __name__ == "__main__":
    raise SystemExit(main())
