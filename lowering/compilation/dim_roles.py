"""What the dims of a graph are to its schedule: batch, rows, columns, reduced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, names_of
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.scheduling.waves import IterableReduction, last_wave


@dataclass(frozen=True)
class DimRoles:
    """
    The symbols of a graph by role; `sizes` has those that facts bind to a number.

    `outputs` are symbols that are dims of outputs, each a batch dim, rows (the second
    last dim) or columns (the last). `whole` says which should not be divided, and why.
    `reduced` are symbols of reduced dims, `last_reduced` those of reductions with no
    other behind them. Of a matmul's result, `made_by_matmul` are rows and columns, and
    `batch_of_matmul` the dims before. `inside_out` are all of them, by how far from the
    last dim of a tensor they stand.
    """

    sizes: Mapping[str, int]
    outputs: Sequence[str]
    batch: frozenset[str]
    rows: frozenset[str]
    columns: frozenset[str]
    whole: Mapping[str, str]
    reduced: Sequence[str]
    last_reduced: frozenset[str]
    made_by_matmul: frozenset[str]
    batch_of_matmul: frozenset[str]
    inside_out: Sequence[str]
    has_matmul: bool


def dim_roles(graph: GraphOp) -> DimRoles:
    """
    Find the roles by scheduling the graph without tiles and with each one alone.

    Raises PassFailedException for a graph that has no schedule even without tiles.
    """
    plan = schedule_blocks(graph, {})
    operators = _operators(plan)
    facts = plan.facts
    sizes = {
        name: size
        for name in graph.symbol_names
        if isinstance(size := facts.binding.get(name), int)
    }
    placed = _placed(plan, graph.symbol_names)
    reductions = _reductions(operators, facts, graph.symbol_names)
    matmuls = [op for op in operators if op.ON_TENSOR_CORES]
    made = [op.result_type.dims for op in matmuls]
    return DimRoles(
        sizes=sizes,
        outputs=list(placed),
        batch=frozenset(name for name, place in placed.items() if place < -2),
        rows=frozenset(name for name, place in placed.items() if place == -2),
        columns=frozenset(name for name, place in placed.items() if place == -1),
        whole=_whole(graph, placed, reductions),
        reduced=list(dict.fromkeys(r.symbol for r in reductions)),
        last_reduced=frozenset(r.symbol for r in last_wave(reductions)),
        made_by_matmul=_names(dim for dims in made for dim in dims[-2:]),
        batch_of_matmul=_names(dim for dims in made for dim in dims[:-2]),
        inside_out=_inside_out(operators, graph.symbol_names),
        has_matmul=bool(matmuls),
    )


def _operators(plan: PlanOp) -> list[Operator]:
    """Those of the one kernel of a plan that `schedule-blocks` made."""
    (kernel,) = (op for op in plan.body.block.ops if isinstance(op, KernelOp))
    return [op for op in kernel.body.block.ops if isinstance(op, Operator)]


def _placed(plan: PlanOp, symbols: Sequence[str]) -> dict[str, int]:
    """Each symbol that is an output dim, and its last place from behind, in order."""
    (kernel,) = (op for op in plan.body.block.ops if isinstance(op, KernelOp))
    placed: dict[str, int] = {}
    for out in kernel.outs:
        dims = [str(dim) for dim in out.type.dims]
        for place, name in enumerate(dims, start=-len(dims)):
            if name in symbols:
                placed[name] = max(place, placed.get(name, place))
    return placed


def _inside_out(operators: Sequence[Operator], symbols: Sequence[str]) -> list[str]:
    depths: dict[str, int] = {}
    for op in operators:
        for type_ in (*op.operand_types, op.result_type):
            for depth, dim in enumerate(reversed(type_.dims)):
                if (name := str(dim)) in symbols:
                    depths[name] = min(depth, depths.get(name, depth))
    return sorted(depths, key=lambda name: depths[name])


def _names(dims: Iterable[Dim]) -> frozenset[str]:
    return frozenset(name for dim in dims for name in names_of(dim))


def _reductions(
    operators: Sequence[Operator], facts: Facts, symbols: Sequence[str]
) -> list[IterableReduction]:
    """Every reduction of more than one element, by the symbol that would be tiled."""
    counts = {n for fact in facts if fact.relation == "|" for n in names_of(fact.lhs)}
    found: list[IterableReduction] = []
    for op in operators:
        if op.REDUCTION is None:
            continue
        (extent,) = op.expression.reduced
        if name := _tiled_symbol(extent, counts, symbols):
            found.append(IterableReduction(op, name, extent))
    return found


def _tiled_symbol(extent: Dim, counts: set[str], symbols: Sequence[str]) -> str | None:
    """The one size in an extent such as `L floordiv s`, where `s` is a split count."""
    names = names_of(extent) - counts
    return next((name for name in symbols if names == frozenset({name})), None)


def _whole(
    graph: GraphOp, placed: Mapping[str, int], reductions: Sequence[IterableReduction]
) -> dict[str, str]:
    """The rows and columns that should not be divided, and why."""
    whole: dict[str, str] = {}
    normalized = {r.symbol for r in reductions if not r.op.ON_TENSOR_CORES}
    for name in (name for name, place in placed.items() if place >= -2):
        if name in normalized:
            whole[name] = "rows are reduced over it and still needed"
            continue
        try:
            plan = schedule_blocks(graph, {name: None})
        except PassFailedException as error:
            whole[name] = str(error)
            continue
        tile = plan.symbol_names[-1]
        for op in _operators(plan):
            if op.ON_TENSOR_CORES and not _depends(op, tile):
                whole[name] = (
                    f"the matmul {_name(op.results[0])} would be repeated for each tile"
                )
                break
    return whole


def _depends(op: Operator, name: str) -> bool:
    return any(name in names_of(dim) for dim in op.result_type.dims)


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "without a name"
