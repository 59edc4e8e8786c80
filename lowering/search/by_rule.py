"""A graph to the kernel of a simple rule: from the cache, or by the passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.compiled import Compiled
from cleave.lowering.compilation.place import require_gpu, this_place
from cleave.lowering.compilation.supported import require_supported
from cleave.lowering.compilation.wanted import Wanted
from cleave.lowering.search.cached_compilation import (
    Record,
    compile_cached,
    key_of,
)
from cleave.lowering.search.effort import RULE


def compile_by_rule(
    graph: GraphOp,
    wanted: Wanted,
    *,
    use_cache: bool,
    notes: Sequence[str],
    out_dir: Path | None,
    progress: Callable[[str], object],
) -> Compiled:
    """
    Compile a graph for the GPU of this machine, or without one as far as that goes.

    `out_dir` is where all files are kept; `progress` is told what is done next; `notes`
    go into the report. Raises CompilationError, PassFailedException or OSError, with a
    message for the user.
    """
    place = this_place()
    if wanted.require_gpu:
        require_gpu(place.cannot_run)
    require_supported(graph, place.hardware)

    def make(folder: Path) -> Record:
        # Passes and NumPy, which a result in the cache needs nothing of.
        from cleave.lowering.compilation.compilation import compile_graph

        return compile_graph(graph, wanted, place, folder, progress)

    key = key_of(
        str(graph),
        place,
        effort=RULE,
        tile=_ordered(wanted.tile),
        reduce=_ordered(wanted.reduce),
        threads=wanted.threads,
        stages=wanted.stages,
        swizzle=wanted.swizzle,
        fast_math=wanted.fast_math,
    )
    return compile_cached(
        make,
        key if use_cache else None,
        place,
        gpu_is_required=wanted.require_gpu,
        out_dir=out_dir,
        progress=progress,
        notes=notes,
    )


def _ordered(tiles: Mapping[str, int] | None) -> list[tuple[str, int]] | None:
    """Tiles in the order in which they are stated, which loops are nested in."""
    return None if tiles is None else list(tiles.items())
