"""Cleave: from a tensor subgraph to a fast, safe GPU kernel, by search."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from cleave.dialects.algebra.graph import GraphOp
    from cleave.lowering.compilation.compiled import Compiled

__version__ = "0.1.0"

__all__ = ["__version__", "compile"]


def compile(
    graph: str | PathLike[str] | GraphOp,
    *,
    name: str | None = None,
    tile: str | Mapping[str, int] | None = None,
    reduce: str | Mapping[str, int] | None = None,
    threads: int | None = None,
    stages: int | None = None,
    swizzle: int | None = None,
    fast_math: bool = False,
    require_gpu: bool = False,
    effort: str | None = None,
    budget_seconds: float | None = None,
    cache: bool = True,
    superoptimize: bool = True,
    iterate: bool = True,
    layouts: bool = True,
    out_dir: str | PathLike[str] | None = None,
) -> Compiled:
    """
    Compile a tensor subgraph to a GPU kernel, a function of PyTorch tensors.

        attention = cleave.compile("attention.mlir")
        o = attention(q, k, v)                # allocates o
        attention(q, k, v, out=o)             # allocates nothing

    Equal graphs, their schedules, and cuts into several kernels are searched. With a
    GPU the best by the cost model are built for it, checked against the graph in
    float64 on it, and timed; the fastest is the result. Without one it is the best by
    the model, with machine code for an H200, and its tile program was checked on small
    sizes in NumPy; calling it raises an error.

    What was compiled before comes from a cache: in CLEAVE_CACHE_DIR, or in the user's
    cache folder.

    Args:
        graph: an `algebra.graph`: the path of an .mlir file, IR text, or the operation.
        name: which graph, where there are several.
        tile: tile sizes of output dims by symbol, `"H=1 M=128"` or a mapping. Dims that
            it does not name stay whole. If it, or one of the next four, is stated,
            nothing is searched: a simple rule chooses the others.
        reduce: tile sizes of reduced dims, in the same way, `"L=128"`.
        threads: threads of a threadblock that compute, a multiple of 128.
        stages: stages of the software pipeline of loops.
        swizzle: the panel width in which threadblocks are ordered for the L2; 0: none.
        fast_math: allow approximate divisions, square roots and exponentials.
        require_gpu: fail if the kernel cannot run here.
        effort: "quick", "normal" (the default) or "full"; or "rule", which searches
            nothing. Graphs with dims that are only known at run time take the rule.
        budget_seconds: after how long no more candidates are built. One always is. The
            search for them takes half of it at most, or its own limit: 15, 20 or 60 s
            of a core by effort.
        cache: whether to take results from the cache, and keep them there.
        superoptimize, iterate, layouts: False leaves out a part of the search, to
            measure what it is worth: equal graphs, tiling of tiles, and reasoning about
            layouts of tensor cores.
        out_dir: a folder for the IR of every stage, the generated source, its build and
            the report; made if it is not there.
    Returns:
        A callable object with `.source`, `.stages` and `.report`.
    Raises:
        ValueError, xdsl.utils.exceptions.DiagnosticException: a graph that cannot be
            compiled like this; the message names operator, dim and rule.
        TypeError: a graph that is neither text nor an operation.
        OSError: a file that cannot be read or written.
    """
    from cleave.dialects.algebra.graph import GraphOp
    from cleave.lowering.compilation.wanted import Wanted, stated_tiles
    from cleave.lowering.search.effort import Ablation
    from cleave.lowering.search.request import Request, compile_request
    from cleave.tools.graph_file import parse_graph, read_graph

    # Programs whose types nobody checks may give anything.
    if not isinstance(given := cast(object, graph), str | PathLike | GraphOp):
        kind = type(given).__name__
        raise TypeError(f"graph is {kind}; it is a path, IR text or an algebra.graph")
    if isinstance(graph, str) and "algebra.graph" in graph:
        op = parse_graph(graph.encode(), "<text>", name)
    elif isinstance(graph, str | PathLike):
        op = read_graph(str(Path(graph)), name)
    else:
        op = graph
    wanted = Wanted(
        stated_tiles(tile),
        stated_tiles(reduce),
        threads,
        stages,
        swizzle,
        fast_math,
        require_gpu,
    )
    request = Request(
        wanted,
        effort,
        budget_seconds,
        cache,
        Ablation(superoptimize, iterate, layouts),
    )
    return compile_request(op, request, out_dir=Path(out_dir) if out_dir else None)
