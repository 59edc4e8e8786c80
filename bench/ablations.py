"""
Measure what the parts of Cleave are worth, as the paper's Fig. 12 does; one JSON file.

    python -m bench.ablations --out bench/results/ablations.json

Each row of the paper's tables is searched with everything and without a part, and the
best plans of all of these searches are timed side by side. The performance of a variant
is the time of the whole Cleave over its own, in the geometric mean over rows. `ours`
counts plans that are kernels of ours alone, and says for how many rows there are some:
without iterative tiling a matmul of many terms has no tile. `returned` counts what a
user gets, which may call a library for matmuls that stand alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.entry import Entry
from bench.foundations import build, measure_all
from bench.machine import machine, write_json
from bench.shapes import Row
from bench.subgraphs import Searched, parser_of, rows_with, search
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.lowering.search.effort import Ablation

WHOLE = "Cleave"
VARIANTS: Mapping[str, Ablation] = {
    WHOLE: Ablation(),
    "without tensor-core layout reasoning": Ablation(layouts=False),
    "without iterative tiling": Ablation(iterate=False),
    "without superoptimization": Ablation(superoptimize=False),
    "without both": Ablation(superoptimize=False, iterate=False),
}
"""The bars of Fig. 12; both are superoptimization and iterative tiling."""


@dataclass(frozen=True)
class Variant:
    """What the search of a row gave without a part, and its plans."""

    searched: Searched
    plans: Sequence[Entry]

    def best_ms(self, *, ours: bool) -> float | None:
        """The least time of its plans, or of those that are kernels of ours alone."""
        times = [
            plan.timing.median_ms
            for plan, calls in zip(self.plans, self.searched.calls_library, strict=True)
            if plan.timing is not None and not (ours and calls)
        ]
        return min(times, default=None)


def task(
    each: tuple[Row, str], folder: Path, hardware: Hardware, plans: int
) -> Searched:
    """The plans of a row without a part; runs in a process of its own."""
    row, variant = each
    return search(row, folder, hardware, plans, VARIANTS[variant], variant)


def variants_of(found: Mapping[str, Searched]) -> dict[str, Variant]:
    """The variants of a row; a plan that several of them have is there once."""
    entries: dict[str, Entry] = {}
    variants: dict[str, Variant] = {}
    for name, searched in found.items():
        plans: list[Entry] = []
        for module, ms in zip(searched.modules, searched.predicted_ms, strict=True):
            text = module.read_text(encoding="utf-8")
            plan = Entry(module, searched.row, predicted_ms=ms)
            plans.append(entries.setdefault(text, plan))
        variants[name] = Variant(searched, plans)
    return variants


def admit_faults(variant: Variant) -> None:
    """Let kernels with faults run where there are no others, as a compilation does."""
    built = [plan for plan in variant.plans if plan.built is not None]
    if all(plan.reasons for plan in built):
        for plan in built:
            plan.reasons.clear()


def performance(rows: Sequence[Mapping[str, Variant]]) -> dict[str, Any]:
    """The bars, by variant."""
    bars: dict[str, Any] = {}
    for name in VARIANTS:
        bars[name] = {}
        for which in ("ours", "returned"):
            pairs = [
                [row[each].best_ms(ours=which == "ours") for each in (WHOLE, name)]
                for row in rows
            ]
            ratios = [whole / part for whole, part in pairs if whole and part]
            bars[name][which] = {
                "performance": geometric_mean(ratios) if ratios else None,
                "rows": len(ratios),
            }
    return bars


def literal(row: Mapping[str, Variant]) -> dict[str, Any]:
    """A row of the JSON file."""
    return {
        "row": row[WHOLE].searched.row.title,
        "variants": {
            name: {
                "ours_ms": variant.best_ms(ours=True),
                "returned_ms": variant.best_ms(ours=False),
                "plans": [plan.name for plan in variant.plans],
                "reasons": [r for plan in variant.plans for r in plan.reasons],
                "failure": variant.searched.failure,
                "search_seconds": variant.searched.seconds,
            }
            for name, variant in row.items()
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if each row has a plan of the whole Cleave, 1 otherwise."""
    import torch

    options = parser_of("bench.ablations", plans=3, repeats=20).parse_args(arguments)

    hardware = load_hardware(options.hardware)
    result = machine("bench.ablations")
    tasks = [(row, name) for row in rows_with(options.only) for name in VARIANTS]
    with tempfile.TemporaryDirectory(prefix="cleave-bench-") as scratch:
        folder = Path(scratch)
        searching = partial(task, folder=folder, hardware=hardware, plans=options.plans)
        with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
            searched = list(pool.map(searching, tasks))
        count = len(VARIANTS)
        rows = [
            variants_of(dict(zip(VARIANTS, searched[n : n + count], strict=True)))
            for n in range(0, len(searched), count)
        ]
        variants = [variant for row in rows for variant in row.values()]
        entries = list({id(e): e for v in variants for e in v.plans}.values())

        def save() -> None:
            lines = [literal(row) for row in rows]
            plans = [entry.literal(hardware) for entry in entries]
            bars = performance(rows)
            data = result | {"performance": bars, "rows": lines, "plans": plans}
            write_json(options.out, data)

        build(entries, folder, hardware, workers=options.workers)
        for variant in variants:
            admit_faults(variant)
        save()
        if torch.cuda.is_available():
            measure_all(
                entries, save, repeats=options.repeats, seed=0, with_peers=False
            )
        else:
            print("no CUDA device: searched and built, not run")
    for name, bar in performance(rows).items():
        print(f"{name:40} {bar}")
    whole = [any(plan.built for plan in row[WHOLE].plans) for row in rows]
    return 0 if all(whole) else 1


if __name__ == "__main__":
    raise SystemExit(main())
