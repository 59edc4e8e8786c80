"""
A graph to its fastest kernel: from the cache, or by the search.

NumPy and the passes of the search come with the search alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.compiled import Compiled
from cleave.lowering.compilation.place import require_gpu, this_place
from cleave.lowering.compilation.supported import require_supported
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.search.cached_compilation import (
    Record,
    compile_cached,
    key_of,
)
from cleave.lowering.search.effort import DEFAULT_EFFORT, EFFORTS, Ablation
from cleave.lowering.toolchain import tilelang_is_installed
from cleave.passes.symbolize import SymbolizePass


@dataclass(frozen=True)
class SearchOptions:
    """What is asked of a search."""

    effort: str = DEFAULT_EFFORT
    budget_seconds: float | None = None
    fast_math: bool = False
    require_gpu: bool = False
    use_cache: bool = True
    ablation: Ablation = field(default_factory=Ablation)

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            known = ", ".join(EFFORTS)
            raise CompilationError(f"effort is '{self.effort}', not one of {known}")


def compile_by_search(
    graph: GraphOp,
    options: SearchOptions,
    *,
    out_dir: Path | None = None,
    progress: Callable[[str], object] = lambda step: None,
) -> Compiled:
    """
    Compile a graph for the GPU of this machine, or without one as far as that goes.

    `out_dir` is where all files are kept; `progress` is told what is done next. Raises
    CompilationError or OSError, with a message for the user.
    """
    started = time.monotonic()
    place = this_place()
    if options.require_gpu:
        require_gpu(place.cannot_run)
    if not tilelang_is_installed():
        raise CompilationError(
            "TileLang is not installed, which makes CUDA of the generated module: "
            "pip install 'cleave[tilelang]'"
        )
    if "nvcc" not in place.versions:
        raise CompilationError(
            "there is no nvcc, which the search builds its candidates with; "
            "set CUDA_HOME, or state tile sizes to get the CUDA text of one kernel"
        )
    require_supported(graph, place.hardware)
    symbolic = symbolized(graph)
    budget = options.budget_seconds

    def make(folder: Path) -> Record:
        # All that a result in the cache needs nothing of.
        from cleave.lowering.search.searching import searched

        record = searched(
            symbolic,
            folder,
            place,
            effort=options.effort,
            ablation=options.ablation,
            fast_math=options.fast_math,
            deadline=None if budget is None else started + budget,
            progress=progress,
        )
        record["stages"] = {"input": f"{graph!s}\n", **record["stages"]}
        return record

    key = key_of(
        str(symbolic),
        place,
        effort=options.effort,
        budget_seconds=budget,
        fast_math=options.fast_math,
        ablation=vars(options.ablation),
    )
    return compile_cached(
        make,
        key if options.use_cache else None,
        place,
        gpu_is_required=options.require_gpu,
        out_dir=out_dir,
        progress=progress,
    )


def unbound_symbols(graph: GraphOp) -> list[str]:
    """The symbols whose sizes are only known at run time."""
    binding = graph.facts.binding
    return [n for n in graph.symbol_names if not isinstance(binding.get(n), int)]


def symbolized(graph: GraphOp) -> GraphOp:
    """A copy with symbols in the place of numbers; sizes have to be bound."""
    module = ModuleOp([graph.clone()])
    try:
        SymbolizePass().apply(Context(), module)
        module.verify()
    except (PassFailedException, VerifyException) as error:
        raise CompilationError(f"@{graph.graph_name}: {error}") from error
    symbolic = module.body.block.first_op
    assert isinstance(symbolic, GraphOp)
    symbolic.detach()
    if unbound := unbound_symbols(symbolic):
        raise CompilationError(
            f"@{graph.graph_name}: {unbound[0]} has no size, which the search needs; "
            f"write `where [{unbound[0]} = ...]`"
        )
    return symbolic
