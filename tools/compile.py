"""`cleave compile`: a graph of a file to a kernel, checked and timed."""

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="IR with an algebra.graph; - for stdin"
    )
    parser.add_argument(
        "-g", "--graph", metavar="NAME", help="which graph, where there are several"
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        type=Path,
        help="keep the IR of every stage, the generated source, the build, the report",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    parser.add_argument(
        "--require-gpu", action="store_true", help="fail if the kernel cannot run here"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="do not show what is being done"
    )
    _add_search_arguments(parser)
    chosen = parser.add_argument_group(
        "choices",
        "With one of these nothing is searched: a simple rule chooses the others.",
    )
    chosen.add_argument(
        "--tile",
        metavar="'H=1 M=128'",
        help="tile sizes of output dims; a dim that is not named stays whole",
    )
    chosen.add_argument(
        "--reduce", metavar="'L=128'", help="the same of reduced dims, for loops"
    )
    chosen.add_argument(
        "--threads", type=int, metavar="N", help="threads of a threadblock that compute"
    )
    chosen.add_argument(
        "--stages", type=int, metavar="N", help="stages of the software pipeline"
    )
    chosen.add_argument(
        "--swizzle", type=int, metavar="N", help="panel width of L2 rasterization"
    )
    parser.add_argument(
        "--fast-math", action="store_true", help="approximate division and roots"
    )


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("search")
    search.add_argument(
        "--effort",
        metavar="EFFORT",
        help="quick, normal (the default) or full; rule searches nothing",
    )
    search.add_argument(
        "--budget-seconds",
        type=float,
        metavar="S",
        help="search for half of this at most, and build no more candidates after it; "
        "one is always built",
    )
    search.add_argument(
        "--no-cache",
        action="store_true",
        help="neither take results from the cache nor keep them there",
    )
    for part, what in (
        ("superoptimize", "equal graphs"),
        ("iterate", "tiling of tiles"),
        ("layouts", "reasoning about layouts of tensor cores"),
    ):
        search.add_argument(
            f"--no-{part}", action="store_true", help=f"leave out {what}, to measure it"
        )


def run(args: argparse.Namespace) -> int:
    """Return 0; whatever keeps a graph from being compiled is raised."""
    from cleave.lowering.compilation.compiled import NotKeptError
    from cleave.lowering.compilation.wanted import Wanted, stated_tiles
    from cleave.lowering.search.effort import Ablation
    from cleave.lowering.search.request import Request, compile_request
    from cleave.tools.compile_report import print_report
    from cleave.tools.graph_file import read_graph
    from cleave.tools.progress import progress

    wanted = Wanted(
        stated_tiles(args.tile),
        stated_tiles(args.reduce),
        args.threads,
        args.stages,
        args.swizzle,
        args.fast_math,
        args.require_gpu,
    )
    request = Request(
        wanted,
        args.effort,
        args.budget_seconds,
        not args.no_cache,
        Ablation(not args.no_superoptimize, not args.no_iterate, not args.no_layouts),
    )
    graph = read_graph(args.file, args.graph)
    not_kept: NotKeptError | None = None
    with progress(quiet=args.quiet or args.json) as step:
        try:
            compiled = compile_request(graph, request, out_dir=args.out, progress=step)
        except NotKeptError as error:
            compiled, not_kept = error.compiled, error
    if args.json:
        print(json.dumps(compiled.json(), indent=2))
    else:
        print_report(compiled.report, None if not_kept else args.out)
    if not_kept is not None:
        raise not_kept
    return 0
