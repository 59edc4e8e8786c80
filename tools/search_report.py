"""The report of a search for people."""

from collections import Counter
from collections.abc import Iterable, Iterator

from cleave.dialects.wording import counted
from cleave.lowering.search.report import SearchReport
from cleave.tools.check_line import check_line
from cleave.tools.kernel_line import kernel_line

SHOWN = 5
"""How many reasons for which schedules were left out are shown."""


def search_lines(report: SearchReport) -> Iterator[tuple[str, str]]:
    """What there is to say, each under a word; more lines on it have none."""
    sizes = ", ".join(f"{name} = {size}" for name, size in report.sizes.items())
    yield "graph", f"@{report.graph}" + (f" with {sizes}" if sizes else "")
    yield "GPU", report.device or f"none here; compiled for {report.hardware['name']}"
    built = sum(trial.measured_ms is not None for trial in report.trials)
    tried = counted(len(report.trials), "plan")
    if built:
        tried += f", {built} measured"
    yield (
        "searched",
        f"{counted(report.candidates, 'candidate')}, "
        f"{counted(report.evaluated, 'schedule')}, {tried}",
    )
    yield from _under("chosen", report.chosen)
    yield from _under("kernel", map(kernel_line, report.kernels))
    yield from _under("fault", report.faults)
    checked = check_line(
        report.checked, report.checked_sizes, report.max_error, report.allowed_error
    )
    yield "checked", checked
    yield from _times(report)
    rejected = Counter(trial.reason for trial in report.trials if trial.reason)
    reasons = [
        f"{counted(number, 'plan')}: {reason}"
        for reason, number in rejected.most_common()
    ]
    yield from _under("rejected", reasons)
    pruned = sorted(report.pruned.items(), key=lambda each: -each[1])
    left_out = [f"{counted(n, 'schedule')}: {rule}" for rule, n in pruned[:SHOWN]]
    if rest := pruned[SHOWN:]:
        left_out.append(
            f"{sum(n for _, n in rest):,} for {counted(len(rest), 'more reason')}"
        )
    yield from _under("left out", left_out)
    yield from _under("note", report.notes)
    yield "took", ", ".join(f"{n} {s:.1f} s" for n, s in report.seconds.items())


def _under(word: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines):
        yield "" if number else word, line


def _times(report: SearchReport) -> Iterator[tuple[str, str]]:
    if report.predicted_ms is not None:
        yield "predicted", f"{report.predicted_ms:.4f} ms"
    measured = report.measured_ms
    if measured is None:
        yield "measured", f"no: {report.not_measured}"
    else:
        beside = ""
        if report.chose_unfused:
            beside = ": the unfused plan, and nothing is faster"
        elif report.unfused_ms:
            beside = f", unfused {report.unfused_ms:.4f} ms"
        yield "measured", f"{measured:.4f} ms{beside}"
    if report.floor_ms is not None:
        time, how = (measured, "") if measured else (report.predicted_ms, " predicted")
        part = f", {report.floor_ms / time:.0%} of it{how}" if time else ""
        yield "floor", f"{report.floor_ms:.4f} ms{part}"
