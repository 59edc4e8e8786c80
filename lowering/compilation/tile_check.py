"""The check without a GPU: a tile program executed in NumPy on small sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cleave.dialects.algebra.dtypes import numpy_dtype
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import is_float
from cleave.dialects.dims import symbol
from cleave.dialects.facts import Fact
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import FactAttr, TensorType
from cleave.dialects.wording import counted
from cleave.lowering.compilation.accuracy import (
    DRAWINGS,
    Drawing,
    NumericCheck,
    allowed_error,
    is_usable,
    relative_error,
)
from cleave.lowering.compilation.pipeline import TileProgram, prepare, schedule
from cleave.lowering.compilation.reduced_sizes import (
    reduced_sizes,
    sizes_with_tails,
)
from cleave.lowering.compilation.reference import results_of
from cleave.lowering.numpy_algebra import (
    Array,
    ExecutionError,
    evaluate_dims,
    execute_graph,
)
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.passes.insert_casts import insert_casts

SEED = 0
EXACT = 1e-9
"""The relative error allowed where everything is computed in float64."""
MOST_ELEMENTS = 1 << 24
"""Of the largest input or output; beyond that the execution would take minutes."""


def check_tiles(graph: GraphOp, program: TileProgram) -> NumericCheck:
    """
    Execute a tile program as it is, on sizes for which it is right, and then one that
    was scheduled in the same way for sizes where all tiles have tails.

    Raises ExecutionError if no sizes are small enough.
    """
    configuration = program.configuration
    sizes = reduced_sizes(graph, configuration)
    checked = _Execution(graph, sizes).check(program.plan)
    if checked.reasons:
        return checked
    with_tails = sizes_with_tails(graph, configuration)
    bound = graph.clone()
    bind(bound, with_tails, graph.symbol_names)
    program = schedule(prepare(bound), configuration)
    tails = _Execution(graph, with_tails).check(program.plan)
    return tails if tails.reasons else checked


def check_plan(graph: GraphOp, plan: PlanOp, sizes: Mapping[str, int]) -> NumericCheck:
    """Execute a plan for a graph on sizes on which it means the same."""
    return _Execution(graph, sizes).check(plan)


class _Execution:
    """A graph on some sizes, with inputs for it and what it computes from them."""

    def __init__(self, graph: GraphOp, sizes: Mapping[str, int]) -> None:
        self.graph = graph
        self.sizes = sizes
        for type_ in [*graph.input_types, *graph.output_types]:
            if np.prod(evaluate_dims(type_.dims, sizes)) > MOST_ELEMENTS:
                raise ExecutionError(f"a tensor of {type_} is too large")
        for drawing in DRAWINGS:
            self.drawing = drawing
            self.inputs = [
                draw(type_, sizes, drawing, SEED + position)
                for position, type_ in enumerate(graph.input_types)
            ]
            with np.errstate(all="ignore"):
                self.exact = results_of(np, graph, self._exact)
                self.rounded = results_of(np, graph, self._rounded)
            if is_usable(np, self.exact, [each.astype(float) for each in self.rounded]):
                break

    def _exact(self, graph: GraphOp) -> list[Array]:
        return execute_graph(graph, self.inputs, self.sizes)

    def _rounded(self, graph: GraphOp) -> list[Array]:
        rounded = graph.clone()
        insert_casts(rounded)
        return execute_graph(rounded, self.inputs, self.sizes, "rounded")

    def check(self, plan: PlanOp) -> NumericCheck:
        """A plan for this graph against it; sizes may be of its own symbols, too."""
        plan = plan.clone()
        bind(plan, self.sizes, [*self.sizes])
        reasons: list[str] = []
        errors: list[float] = []
        allowed: list[float] = []
        exact = execute_plan(plan, self.inputs, order="reverse")
        reasons += self._reasons("in float64", exact, [EXACT] * len(exact))
        tiles = execute_plan(
            plan, self.inputs, precision="rounded", order="random", seed=SEED
        )
        for result, rounded, reference in zip(
            tiles, self.rounded, self.exact, strict=True
        ):
            errors.append(relative_error(np, result.astype(float), reference)[0])
            operator_error, _ = relative_error(np, rounded.astype(float), reference)
            allowed.append(allowed_error(self.graph, operator_error))
        reasons += self._reasons("with roundings", tiles, allowed)
        return NumericCheck(
            "numpy-tiles", dict(self.sizes), self.drawing, errors, allowed, reasons
        )

    def _reasons(
        self, how: str, results: Sequence[Array], allowed: Sequence[float]
    ) -> list[str]:
        reasons: list[str] = []
        for position, (result, reference, most) in enumerate(
            zip(results, self.exact, allowed, strict=True)
        ):
            where = f"result {position}, {how}"
            error, wrong = relative_error(np, result.astype(float), reference)
            if wrong:
                elements = counted(wrong, "element")
                reasons.append(f"{where}: {elements} not finite where the others are")
            if not error <= most:
                reasons.append(f"{where}: relative error {error:.3g} over {most:.3g}")
        return reasons


def draw(
    type_: TensorType, sizes: Mapping[str, int], drawing: Drawing, seed: int
) -> Array:
    """A random array of a type: floats as drawn, masks, or integers from 0 to 7."""
    shape = evaluate_dims(type_.dims, sizes)
    random = np.random.default_rng(seed)
    if not is_float(type_.element_type):
        dtype = numpy_dtype(type_.element_type)
        high = 2 if dtype.kind == "b" else 8
        return random.integers(0, high, shape).astype(dtype)
    values = random.standard_normal(shape) * drawing.scale
    return np.abs(values) if drawing.positive else values


def bind(op: Any, sizes: Mapping[str, int], names: Sequence[str]) -> None:
    """Replace what a graph or plan says of these symbols by their sizes."""
    kept = [fact for fact in op.facts if not fact.names & {*names}]
    kept += [Fact(symbol(name), "=", sizes[name]) for name in names]
    op.where = type(op.where)(FactAttr(fact) for fact in kept)
