"""From a graph to the graphs that compete with it, whole and cut into kernels."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.wording import counted
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.hardware import Hardware
from cleave.lowering.search.effort import Effort
from cleave.passes.drop_shifts import DropShiftsPass
from cleave.passes.equal_graphs import have_candidates
from cleave.passes.infer_reduced_dims import InferReducedDimsPass
from cleave.passes.partition_reductions import PartitionReductionsPass
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.pass_warnings import collected_warnings
from cleave.passes.scheduling.selection import sequences_of
from cleave.passes.sink_scales import SinkScalesPass
from cleave.passes.specialize import SpecializePass
from cleave.passes.stabilize_exp import StabilizeExpPass
from cleave.passes.superoptimize.superoptimize import SuperoptimizePass
from cleave.passes.symbolize import SymbolizePass

MOST_VALUES = 5_000
"""Distinct tensors of which graphs are made. LayerNorm+MatMul with splits has 1,000; a
search that has more only ends at a limit, and 20,000 take 10 s."""
MOST_GRAPHS = 8_000
"""Equal graphs of which the most promising are taken; each takes 0.3 ms to find."""
ALGEBRA_SHARE = 0.5
"""Of the time of a search, what the search for equal graphs may take of it."""
LEAST_PART = 64
"""Positions of a part of a split dim: a memory line of f16, the least loop tile."""
PARTS_PER_MULTIPROCESSOR = 4
"""More parts than fill the GPU are never faster; some share a multiprocessor."""


class SearchTime:
    """
    How long a search that begins now may take: the seconds of its effort, counted as
    this thread's on a core, so that a machine that is busy finds the same, and half of
    the time until `deadline`, a `time.monotonic()`, for plans have to be built as well.
    """

    def __init__(self, seconds: float, deadline: float | None) -> None:
        self._end = time.thread_time() + seconds
        now = time.monotonic()
        self._latest = math.inf if deadline is None else (now + deadline) / 2

    @property
    def rest(self) -> float:
        """Seconds that are left; none if not above 0."""
        return min(self._end - time.thread_time(), self._latest - time.monotonic())


@dataclass
class EqualGraphs:
    """The graphs that compute the same as one, found while there is time."""

    graph: GraphOp
    """Symbolic, with sizes bound."""
    effort: Effort
    hardware: Hardware
    time: SearchTime
    notes: list[str] = field(default_factory=list[str])
    """Limits that were hit, and graphs that were left out."""
    stages: dict[str, str] = field(default_factory=dict[str, str])
    """The IR on the way, by what made it."""
    _module: ModuleOp = field(init=False)

    def __post_init__(self) -> None:
        """Raises CompilationError if the graph is refused, as do the others."""
        module = ModuleOp([self.graph.clone()])
        self._module = self._run(module, [SymbolizePass(), DropShiftsPass()])
        self.stages[DropShiftsPass.name] = f"{self._module!s}\n"

    def find(self) -> None:
        """Search for equal graphs."""
        superoptimize = SuperoptimizePass(
            split=self.effort.split,
            values=MOST_VALUES,
            graphs=MOST_GRAPHS,
            promising=self.effort.graphs,
            seconds=max(0.0, self.time.rest) * ALGEBRA_SHARE,
        )
        try:
            with collected_warnings() as warnings:
                self._module = self._run(
                    self._module.clone(), [InferReducedDimsPass(), superoptimize]
                )
            self.notes += warnings
        except CompilationError as error:
            # A graph that cannot be searched can still be scheduled as it is.
            self.notes.append(str(error))

    def test(self) -> None:
        """Test those that were found on the original sizes."""
        if not have_candidates(self._module.ops):
            return
        specialize = SpecializePass(
            apart=False,
            least_part=LEAST_PART,
            most_parts=PARTS_PER_MULTIPROCESSOR * self.hardware.multiprocessors,
        )
        try:
            with collected_warnings() as warnings:
                self._module = self._run(self._module.clone(), [specialize])
            self.notes += warnings
            self.stages["equal-graphs"] = f"{self._module!s}\n"
        except CompilationError as error:
            self.notes.append(str(error))

    def divided(self) -> Iterator[list[GraphOp]]:
        """
        Each graph, whole and in pieces, the most promising first; only the first if
        there is no time left.
        """
        module = self._run(self._module, [StabilizeExpPass(), PartitionSplitPass()])
        graphs = [op for op in module.ops if isinstance(op, GraphOp)]
        originals = have_candidates(graphs)
        waiting = sequences_of(g for g in graphs if g.graph_name not in originals)
        for number, sequence in enumerate(waiting):
            if number and self.time.rest <= 0:
                left = len(waiting) - number
                self.notes.append(
                    f"out of time: {left} of {counted(len(waiting), 'equal graph')} "
                    "left unscheduled"
                )
                return
            yield self._cut(sequence)

    def _cut(self, graphs: Sequence[GraphOp]) -> list[GraphOp]:
        """A whole graph with the pieces of its cuts, or pieces as they are."""
        for graph in graphs:
            graph.detach()
        passes = [PartitionReductionsPass(limit=self.effort.cuts), SinkScalesPass()]
        # One of the graphs may have no unfused plan; `why_none` says it if none has.
        with collected_warnings():
            module = self._run(ModuleOp(list(graphs)), passes)
        return [op for op in module.ops if isinstance(op, GraphOp)]

    def _run(self, module: ModuleOp, passes: Sequence[ModulePass]) -> ModuleOp:
        """Run passes, and verify what they have made together."""
        ctx = Context()  # none of the passes asks it for anything
        running = ""
        try:
            for pass_ in passes:
                running = pass_.name
                pass_.apply(ctx, module)
            module.verify()
        except (PassFailedException, VerifyException) as error:
            name = self.graph.graph_name
            raise CompilationError(f"@{name}: {running}: {error}") from error
        return module
