"""
Candidates against adversarial inputs, before one may win.

    report = NumericalGate(graph).try_plan(plan)
    report.reasons  # ["large mean of %x: result 0: 60 of 64 elements are off by ..."]

The reference is the graph in float64; the yardstick is its error in eager mode
(`eager`), the rule stands in `rule`, the inputs come from `families`.

Both the reference and, where eager mode overflows, the yardstick are taken of the graph
in its safe form (`drop-shifts`, then `stabilize-exp`): algebra is the same and an
exponential of 1000 has a meaning. So eager mode is, in this order, the first of these
that is finite where the reference is: the graph as it was written, its safe form, its
safe form in bfloat16. If none is, a result only has to be finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import bf16

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import is_float
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.gate.eager import eager_graph
from cleave.lowering.gate.executors import Array, Executor, NumPyExecutor, Sizes
from cleave.lowering.gate.families import Families
from cleave.lowering.gate.rule import (
    Judgement,
    judge,
    largest_fitting,
    lost,
    overflows,
)
from cleave.lowering.numpy_algebra import bound_sizes
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.passes.drop_shifts import drop_shifts
from cleave.passes.insert_casts import insert_casts
from cleave.passes.stabilize_exp import stabilize

Run: TypeAlias = Callable[..., Sequence[Array]]
"""A candidate: from the inputs, in their types, to the results."""


@dataclass(frozen=True)
class FamilyReport:
    """What a candidate did on the inputs of one family."""

    family: str
    judgements: Sequence[Judgement]

    @property
    def reasons(self) -> list[str]:
        return [
            f"{self.family}: result {position}: {judgement}"
            for position, judgement in enumerate(self.judgements)
            if not judgement.is_right
        ]


@dataclass(frozen=True)
class GateReport:
    """`reasons` says why a candidate is rejected, and by which inputs."""

    families: Sequence[FamilyReport]

    @property
    def reasons(self) -> list[str]:
        return [reason for family in self.families for reason in family.reasons]

    @property
    def passes(self) -> bool:
        return not self.reasons


@dataclass(frozen=True)
class _Trial:
    """Inputs of a family, with what results are judged by."""

    family: str
    inputs: Sequence[Array]
    references: Sequence[Array]
    limits: Sequence[Array]
    """The safe form with only those roundings that every kernel has."""
    eager: Sequence[Array] | None


@dataclass
class NumericalGate:
    """
    The gate of one graph on some sizes; references are computed once for all of its
    candidates.

    `sizes` has the graph's symbols that facts do not bind. Families whose inputs have
    no finite reference say nothing and are left out.
    """

    graph: GraphOp
    sizes: Sizes = field(default_factory=dict[str, int])
    executor: Executor = field(default_factory=NumPyExecutor)
    seed: int = 0

    def __post_init__(self) -> None:
        self.sizes = bound_sizes(self.graph, self.sizes)
        plain = self.graph.clone()
        drop_shifts(plain)
        self.plain = plain
        self.safe = plain.clone()
        stabilize(self.safe)
        self.trials = list(self._trials())

    # Candidates

    def try_graph(self, candidate: GraphOp) -> GateReport:
        """An equal graph, computed with the roundings of `insert-casts`."""
        rounded = candidate.clone()
        insert_casts(rounded)
        return self.try_run(
            lambda *inputs: self.executor.execute(
                rounded, inputs, self.sizes, "rounded"
            )
        )

    def try_plan(self, plan: PlanOp) -> GateReport:
        """A tile program, executed tile by tile in NumPy."""

        def run(*inputs: Array) -> Sequence[Array]:
            with np.errstate(all="ignore"):
                return execute_plan(plan, inputs, self.sizes, "rounded")

        return self.try_run(run)

    def try_run(self, run: Run) -> GateReport:
        """
        Anything that takes the graph's inputs, arrays of the executor in their types,
        and returns its results: a compiled graph, if the executor is its device.
        """
        return GateReport([self._judged(trial, run) for trial in self.trials])

    def _judged(self, trial: _Trial, run: Run) -> FamilyReport:
        results = run(*trial.inputs)
        arrays, exact = self.executor.np, self.executor.exact
        eager = trial.eager or [None] * len(results)
        judgements = [
            judge(arrays, exact(result), reference, low, type_.element_type, limit)
            for result, reference, low, limit, type_ in zip(
                results,
                trial.references,
                eager,
                trial.limits,
                self.graph.output_types,
                strict=True,
            )
        ]
        return FamilyReport(trial.family, judgements)

    # The graph itself

    def losses(self) -> list[str]:
        """
        By which inputs, and how, the graph as it was written loses its results though
        all of it is computed in float32, with its exponents safe: E[x^2] - E[x]^2
        cancels, whatever is rounded to narrow types. Candidates with the same fault
        pass, for eager mode, the yardstick, has it too.
        """
        arrays = self.executor.np
        elements = [type_.element_type for type_ in self.graph.output_types]
        usual = [0.0] * len(elements)
        found: list[str] = []
        for number, trial in enumerate(self.trials):
            results = self._rounded(self.safe, trial.inputs)
            for position, (result, reference, element) in enumerate(
                zip(results, trial.references, elements, strict=True)
            ):
                if not number and is_float(element):
                    usual[position] = largest_fitting(arrays, reference, element)
                how = lost(arrays, result, reference, element, usual[position])
                if how is not None:
                    found.append(f"{trial.family}: result {position}: {how}")
        return found

    # Yardsticks

    def _trials(self) -> Iterator[_Trial]:
        yardsticks = [
            eager_graph(self.graph),
            eager_graph(self.safe),
            eager_graph(self.safe, low=bf16),
        ]
        limited = self.safe.clone()
        insert_casts(limited)
        isfinite = self.executor.np.isfinite
        for family in Families(self.plain, self.sizes, self.executor, self.seed):
            if (inputs := family.draw()) is None:
                continue
            references = self.executor.execute(self.safe, inputs, self.sizes, "float64")
            if any(bool(isfinite(reference).any()) for reference in references):
                eager = self._eager(yardsticks, inputs, references)
                limits = self._rounded(limited, inputs)
                yield _Trial(family.name, inputs, references, limits, eager)

    def _eager(
        self,
        yardsticks: Sequence[GraphOp],
        inputs: Sequence[Array],
        references: Sequence[Array],
    ) -> Sequence[Array] | None:
        for graph in yardsticks:
            results = self._rounded(graph, inputs)
            if not any(
                overflows(self.executor.np, result, reference, type_.element_type)
                for result, reference, type_ in zip(
                    results, references, self.graph.output_types, strict=True
                )
            ):
                return results
        return None

    def _rounded(self, graph: GraphOp, inputs: Sequence[Array]) -> list[Array]:
        """The results of a graph with its roundings, as float64."""
        results = self.executor.execute(graph, inputs, self.sizes, "rounded")
        return [self.executor.exact(result) for result in results]
