"""What a user asks of a compilation, and the way that is taken for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.wanted import CompilationError, Wanted
from cleave.lowering.search.by_rule import compile_by_rule
from cleave.lowering.search.compiling import (
    SearchOptions,
    compile_by_search,
    unbound_symbols,
)
from cleave.lowering.search.effort import DEFAULT_EFFORT, EFFORTS, RULE, Ablation
from cleave.lowering.toolchain import find_nvcc

if TYPE_CHECKING:
    from cleave.lowering.compilation.compiled import Compiled


@dataclass(frozen=True)
class Request:
    """
    A compilation as it is asked for. `effort` is one of EFFORTS, or RULE for the one
    configuration of a simple rule; None is DEFAULT_EFFORT where that is possible.
    """

    wanted: Wanted = field(default_factory=Wanted)
    effort: str | None = None
    budget_seconds: float | None = None
    use_cache: bool = True
    ablation: Ablation = field(default_factory=Ablation)

    def __post_init__(self) -> None:
        if self.effort not in (None, RULE, *EFFORTS):
            known = ", ".join((*EFFORTS, RULE))
            raise CompilationError(f"effort is '{self.effort}', not one of {known}")
        budget: object = self.budget_seconds
        is_number = isinstance(budget, int | float) and budget > 0
        if budget is not None and not is_number:
            raise CompilationError(
                f"budget-seconds is {budget!r}; it is a number above 0"
            )

    def why_by_rule(self, graph: GraphOp) -> str | None:
        """Why nothing is searched for this graph; None if it is."""
        if self.effort == RULE:
            return f"effort is {RULE}"
        if stated := ", ".join(self.wanted.stated):
            return f"{stated} is stated"
        if unbound := unbound_symbols(graph):
            names = ", ".join(unbound)
            return f"{names} is only known at run time"
        if self.effort is None and find_nvcc() is None:
            return "there is no nvcc to build candidates with"
        return None

    def notes_by_rule(self, why: str) -> list[str]:
        """
        What was not asked for like this: that nothing is searched, unless an option
        says so and no other speaks of the search, and options without an effect.
        """
        is_meant = self.effort == RULE or (self.wanted.stated and self.effort is None)
        without_effect = ", ".join(self._of_the_search)
        if without_effect:
            return [f"not searched, for {why}; without effect: {without_effect}"]
        return [] if is_meant else [f"not searched, for {why}"]

    @property
    def _of_the_search(self) -> Iterator[str]:
        """The options that are stated and that only a search takes, besides effort."""
        if self.budget_seconds is not None:
            yield "budget-seconds"
        for part, is_in in vars(self.ablation).items():
            if not is_in:
                yield f"no-{part}"


def compile_request(
    graph: GraphOp,
    request: Request,
    *,
    out_dir: Path | None = None,
    progress: Callable[[str], object] = lambda step: None,
) -> Compiled:
    """
    Compile a graph for the GPU of this machine, or without one as far as that goes.

    `out_dir` is where all files are kept; `progress` is told what is done next. Raises
    CompilationError, PassFailedException or OSError, with a message for the user.
    """
    if (why := request.why_by_rule(graph)) is not None:
        return compile_by_rule(
            graph,
            request.wanted,
            use_cache=request.use_cache,
            notes=request.notes_by_rule(why),
            out_dir=out_dir,
            progress=progress,
        )
    options = SearchOptions(
        effort=request.effort or DEFAULT_EFFORT,
        budget_seconds=request.budget_seconds,
        fast_math=request.wanted.fast_math,
        require_gpu=request.wanted.require_gpu,
        use_cache=request.use_cache,
        ablation=request.ablation,
    )
    return compile_by_search(graph, options, out_dir=out_dir, progress=progress)
