"""
Build, check and time generated modules against their peers; one JSON file.

    python -m bench.foundations MODULE.py ... --out bench/results/NAME.json

Modules that compute the same row are timed side by side, with the row's peers, in one
run. Each is checked against float64 first; one that is illegal or wrong is not timed.
Without a GPU the modules are built and judged, and all times are null.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.entry import Entry
from bench.machine import machine, write_json
from bench.peers import ready_peers
from bench.references import reference
from bench.shapes import UnknownRowError, row_of
from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.check import check_against, random_inputs
from cleave.lowering.compile_workers import CompileJob, CompileOutcome, compile_all
from cleave.lowering.generated import GeneratedModuleError, load_generated
from cleave.lowering.hardware import Hardware, load_hardware
from cleave.lowering.runtime import CompiledGraph, load_compiled
from cleave.lowering.timing import CudaStopwatch, Stopwatch, time_alternating

if TYPE_CHECKING:
    import torch

TOLERANCE = 1e-3
"""Relative error against float64 up to which a kernel counts as right."""


def read(modules: Iterable[Path]) -> list[Entry]:
    """An entry for each file, with the row that its plan says it computes."""
    entries: list[Entry] = []
    for module in modules:
        entry = Entry(module)
        try:
            entry.row = row_of(load_generated(module).plan)
        except (GeneratedModuleError, UnknownRowError, OSError) as error:
            entry.reasons.append(str(error))
        entries.append(entry)
    return entries


def build(
    entries: Sequence[Entry],
    folder: Path,
    hardware: Hardware,
    *,
    workers: int | None = None,
    done: Callable[[CompileOutcome], object] | None = None,
) -> None:
    """Compile the modules, and judge what the compiler says about them."""
    going = [entry for entry in entries if not entry.reasons]
    jobs = [
        CompileJob(
            entry.name, entry.module, hardware.arch, folder / f"{n}_{entry.name}"
        )
        for n, entry in enumerate(going)
    ]
    outcomes = compile_all(jobs, workers=workers, done=done)
    for entry, outcome in zip(going, outcomes, strict=True):
        entry.built = outcome.built
        if outcome.built is None:
            entry.reasons.append(outcome.reason or "not built")
        else:
            entry.reasons += outcome.built.legality(hardware)


def rows(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The entries that may be run, those of one row together."""

    def title(entry: Entry) -> str:
        assert entry.row is not None
        return f"{entry.row.title} {entry.row.dtype}"

    legal = sorted((e for e in entries if e.built and not e.reasons), key=title)
    return [list(group) for _, group in itertools.groupby(legal, title)]


def measure(
    entries: Sequence[Entry],
    load: Callable[[BuiltPlan], CompiledGraph],
    device: torch.device,
    stopwatch: Stopwatch,
    *,
    repeats: int = 40,
    seed: int = 0,
    with_peers: bool = True,
) -> None:
    """
    Check and time the entries of one row, which are all built, and the row's peers.

    What is found goes into the entries; an exception of the device comes out.
    """
    row, first = entries[0].row, entries[0].built
    assert row is not None
    assert first is not None
    # Plans keep the order of arguments, not always their names.
    scales = {
        spec.name: row.scales.get(arg, 1.0)
        for spec, arg in zip(first.plan.args, row.args, strict=True)
    }
    inputs = random_inputs(first.plan, device, seed=seed, scales=scales)
    expected = reference(row)(*[tensor.double() for tensor in inputs])
    calls: dict[str, Callable[[], object]] = {}
    for n, entry in enumerate(entries):
        assert entry.built is not None
        compiled = load(entry.built)
        (spec,) = compiled.plan.results
        exact = expected.reshape([int(dim) for dim in spec.shape])
        entry.checks = check_against(compiled, [exact], inputs)
        entry.reasons += [r for check in entry.checks for r in check.reasons(TOLERANCE)]
        if not entry.reasons:
            calls[f"{n}"] = _bound(compiled, inputs)
    peers, missing = ready_peers(row, inputs, expected) if with_peers else ([], {})
    calls |= {peer.name: peer.call for peer in peers}
    times = time_alternating(calls, repeats=repeats, stopwatch=stopwatch)
    for n, entry in enumerate(entries):
        entry.timing = times.get(f"{n}")
        entry.peers = {peer.name: times[peer.name] for peer in peers}
        entry.peers_missing = missing


def _bound(
    compiled: CompiledGraph, inputs: Sequence[torch.Tensor]
) -> Callable[[], object]:
    """A call that allocates nothing."""
    results = compiled(*inputs)
    return lambda: compiled(*inputs, out=results)


def measure_all(
    entries: Sequence[Entry],
    save: Callable[[], None],
    *,
    repeats: int,
    seed: int,
    with_peers: bool,
) -> None:
    """Measure row by row on the GPU. `save` is called after each, also a failed one."""
    import torch

    stopwatch = CudaStopwatch()
    device = torch.device("cuda", torch.cuda.current_device())
    lost = ""
    for group in rows(entries):
        try:
            if lost:
                raise RuntimeError(lost)
            measure(
                group,
                load_compiled,
                device,
                stopwatch,
                repeats=repeats,
                seed=seed,
                with_peers=with_peers,
            )
        # Whatever a row does, what the others gave is kept.
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            for entry in group:
                entry.reasons.append(lines[0])
            lost = lost or _lost(group[0])
        save()
        for entry in group:
            print(entry.line(), flush=True)
        if not lost:
            torch.cuda.empty_cache()


def _lost(entry: Entry) -> str:
    """Why nothing runs on the device any more, if so: a fault ends its context."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return f"the device was lost by {entry.name}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if each module was measured (built, without a GPU), 1 otherwise."""
    import torch

    parser = argparse.ArgumentParser(prog="python -m bench.foundations")
    parser.add_argument("modules", nargs="+", type=Path, metavar="MODULE.py")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--hardware", default="h200", help="what to build for")
    parser.add_argument("--repeats", type=int, default=40, help="samples a contender")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="compiling processes")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args(arguments)

    hardware = load_hardware(options.hardware)
    result = machine()
    entries = read(options.modules)

    def save() -> None:
        literals = [entry.literal(hardware) for entry in entries]
        write_json(options.out, result | {"rows": literals})

    def say(outcome: CompileOutcome) -> None:
        state = "built" if outcome.built else outcome.reason
        print(f"{outcome.job.name}: {state} ({outcome.seconds:.1f} s)", flush=True)

    with tempfile.TemporaryDirectory(prefix="cleave-bench-") as folder:
        build(entries, Path(folder), hardware, workers=options.workers, done=say)
        save()
        if torch.cuda.is_available():
            measure_all(
                entries,
                save,
                repeats=options.repeats,
                seed=options.seed,
                with_peers=not options.no_peers,
            )
        else:
            print("no CUDA device: built and judged, not run")
    for entry in entries:
        if entry.reasons:
            print(entry.line())
    return 1 if any(entry.reasons for entry in entries) else 0


if __name__ == "__main__":
    raise SystemExit(main())
