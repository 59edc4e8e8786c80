"""`cleave explain`: which graphs equal a given one, and how they differ from it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleave.dialects.wording import counted
from cleave.tools.errors import UsageError

if TYPE_CHECKING:
    from cleave.dialects.algebra.graph import GraphOp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="IR with an algebra.graph; - for stdin"
    )
    parser.add_argument(
        "-g", "--graph", metavar="NAME", help="which graph, where there are several"
    )
    parser.add_argument(
        "--split", action="store_true", help="also split dims that are reduced"
    )
    parser.add_argument(
        "--extra", metavar="N", type=int, help="how many operators more are allowed"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=20.0, help="time for the search"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    shown.add_argument(
        "--ir", metavar="N", type=int, help="print the IR of candidate N instead"
    )
    shown.add_argument(
        "--picture",
        metavar="N",
        type=int,
        help="draw candidate N as an .svg file",
    )
    parser.add_argument(
        "-o", "--out", metavar="PATH", type=Path, help="where to draw it"
    )


@dataclass(frozen=True)
class Explanation:
    """What there is to say about one candidate."""

    number: int
    name: str
    counts: dict[str, int]
    """How often each operator occurs; views and numbers are left out."""
    changes: list[str]
    """How it differs from the original, as far as there are words for that."""
    kernels: int
    """Into how many kernels its splits cut it."""
    refused: str | None
    """Why it cannot be cut there."""

    @property
    def operators(self) -> int:
        return sum(self.counts.values())


def run(args: argparse.Namespace) -> int:
    """Return 0; whatever keeps a graph from being searched is raised."""
    from cleave.passes.option_ranges import ranges
    from cleave.passes.superoptimize.superoptimize import SuperoptimizePass
    from cleave.tools.graph_file import read_graph

    if args.out is not None and args.picture is None:
        raise UsageError("--out says where to draw; it goes with --picture")
    allowed = ranges(SuperoptimizePass)
    for name, given in (("extra", args.extra), ("seconds", args.seconds)):
        if given is not None and given not in allowed[name]:
            raise UsageError(f"--{name} is {given}; it is a number {allowed[name]}")
    original, *candidates = _search(read_graph(args.file, args.graph), args)
    if args.ir is not None:
        print(_chosen(candidates, args.ir))
    elif args.picture is not None:
        chosen = _chosen(candidates, args.picture)
        print(_draw(chosen, args.out or Path(chosen.graph_name.replace("/", "_"))))
    else:
        explanations = [
            explain(number, original, candidate)
            for number, candidate in enumerate(candidates, start=1)
        ]
        if args.json:
            print(as_json(original, explanations))
        else:
            print_table(original, explanations)
    return 0


def _search(graph: GraphOp, args: argparse.Namespace) -> list[GraphOp]:
    """The graph with symbols in its shapes, and its candidates."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from cleave.dialects.algebra.graph import GraphOp
    from cleave.passes.superoptimize.superoptimize import SuperoptimizePass
    from cleave.passes.symbolize import SymbolizePass

    module = ModuleOp([graph])
    SymbolizePass().apply(Context(), module)
    SuperoptimizePass(
        split="inputs" if args.split else "none",
        extra=args.extra,
        seconds=args.seconds,
        stats=True,
    ).apply(Context(), module)
    return [op for op in module.ops if isinstance(op, GraphOp)]


def _draw(graph: GraphOp, path: Path) -> Path:
    """Write an .svg file and return its path. Raises OSError."""
    from cleave.lowering.report_page.graph_picture import svg

    file = path.with_suffix(".svg")
    file.write_text(svg(graph, alone=True), encoding="utf-8")
    return file


def _chosen(candidates: list[GraphOp], number: int) -> GraphOp:
    if not 1 <= number <= len(candidates):
        raise UsageError(
            f"there is no candidate {number}; there are 1 to {len(candidates)}"
        )
    return candidates[number - 1]


def explain(number: int, original: GraphOp, candidate: GraphOp) -> Explanation:
    from cleave.passes.partition_split import Partition
    from cleave.passes.superoptimize.differences import differences, operator_counts

    partition = Partition(candidate)
    return Explanation(
        number=number,
        name=candidate.graph_name,
        counts=dict(operator_counts(candidate)),
        changes=list(differences(original, candidate)),
        kernels=partition.kernels,
        refused=partition.refusal(),
    )


def search_summary(original: GraphOp) -> dict[str, Any]:
    """The attribute `search` of a graph as plain data."""
    from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
    from xdsl.ir import Attribute

    from cleave.passes.superoptimize.superoptimize import SEARCH

    def plain(attribute: Attribute) -> Any:
        match attribute:
            case DictionaryAttr(data=data):
                return {name: plain(value) for name, value in data.items()}
            case ArrayAttr(data=items):
                return [plain(item) for item in items]
            case IntegerAttr(value=value):
                return value.data
            case StringAttr(data=text):
                return text
            case _:
                return str(attribute)

    return plain(original.attributes[SEARCH])


def as_json(original: GraphOp, explanations: list[Explanation]) -> str:
    """The graph's name, how the search ended, and the fields of each `Explanation`."""
    candidates = [asdict(e) | {"operators": e.operators} for e in explanations]
    summary = search_summary(original)
    return json.dumps(
        {"graph": original.graph_name, "search": summary, "candidates": candidates},
        indent=2,
    )


def print_table(original: GraphOp, explanations: list[Explanation]) -> None:
    """The same for people: a heading, and a line for each candidate."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    summary = search_summary(original)
    statistics = summary["statistics"]
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"@{original.graph_name}: {counted(len(explanations), 'equal graph')} from "
        f"{counted(statistics['values'], 'value')} in "
        f"{statistics['milliseconds'] / 1000:.2f} s"
    )
    if summary["sums"] == "opaque":
        console.print("Sums were opaque: products were not distributed over them.")
    for limit in summary.get("stopped_by", ()):
        console.print(f"The search was stopped by {limit}.")
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("", "operators", "", "kernels", "differs from the original"):
        table.add_column(heading, overflow="fold")
    for e in explanations:
        counts = ", ".join(
            word if n == 1 else f"{n} {word}" for word, n in e.counts.items()
        )
        kernels = f"no: {e.refused}" if e.refused else str(e.kernels)
        changes = "; ".join(e.changes) or "not at all"
        table.add_row(str(e.number), str(e.operators), counts, kernels, changes)
    console.print(table)
