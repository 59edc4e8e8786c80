"""One graph through the passes to TileLang, with the IR after each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.tilelang.text import EmissionError
from cleave.passes.drop_shifts import DropShiftsPass
from cleave.passes.insert_casts import InsertCastsPass
from cleave.passes.memory.placement import (
    require_element_types,
    require_narrow_operands,
)
from cleave.passes.sink_scales import SinkScalesPass
from cleave.passes.stabilize_exp import StabilizeExpPass
from cleave.passes.symbolize import SymbolizePass

INPUT = "input"
"""The name of the stage before all passes."""


class NoProgramError(Exception):
    """A graph that has no program under a configuration; the message says why."""


@dataclass(frozen=True)
class PreparedGraph:
    """
    A graph as it is scheduled, whatever the tiles: exponents are safe, casts explicit.

    `symbolic` is the graph that was given, with symbols in the place of numbers.
    `stages` has the IR text after each pass by the pass's name, in order, and before
    them that of the graph, as `input`.
    """

    stages: Mapping[str, str]
    symbolic: GraphOp
    graph: GraphOp


@dataclass(frozen=True)
class TileProgram:
    """A graph, scheduled and planned under a configuration; `stages` from the start."""

    configuration: Configuration
    stages: Mapping[str, str]
    plan: PlanOp

    def source(self, *, fast_math: bool) -> str:
        """
        The generated module (`cleave.lowering.generated`).

        Raises NoProgramError for what TileLang has no form for.
        """
        try:
            return emit_module(self.plan, fast_math)
        except EmissionError as error:
            raise NoProgramError(str(error)) from error


def graph_passes() -> list[ModulePass]:
    """The passes over symbolic graphs that come before there are tiles."""
    return [DropShiftsPass(), StabilizeExpPass(), InsertCastsPass(), SinkScalesPass()]


def pipeline(configuration: Configuration) -> str:
    """All passes of a configuration, as `cleave-opt -p` takes them."""
    passes = [SymbolizePass(), *graph_passes(), *configuration.passes()]
    return ",".join(str(pass_.pipeline_pass_spec()) for pass_ in passes)


def prepare(graph: GraphOp) -> PreparedGraph:
    """
    Run the passes over graphs on a copy of one.

    Raises NoProgramError where one of them refuses the graph or leaves invalid IR.
    """
    first, symbolic = _run(graph, [SymbolizePass()])
    assert isinstance(symbolic, GraphOp)
    others, prepared = _run(symbolic, graph_passes())
    assert isinstance(prepared, GraphOp)
    try:
        require_element_types(prepared)
        require_narrow_operands(prepared)
    except PassFailedException as error:
        raise NoProgramError(str(error)) from error
    return PreparedGraph({INPUT: _text(graph), **first, **others}, symbolic, prepared)


def schedule(prepared: PreparedGraph, configuration: Configuration) -> TileProgram:
    """
    Run the passes of a configuration on a copy of a graph.

    Raises NoProgramError where one of them refuses the graph or leaves invalid IR.
    """
    stages, plan = _run(prepared.graph, configuration.passes())
    assert isinstance(plan, PlanOp)
    return TileProgram(configuration, {**prepared.stages, **stages}, plan)


def _run(
    graph: GraphOp, passes: Sequence[ModulePass]
) -> tuple[dict[str, str], Operation]:
    """What a copy of a graph becomes, and the text after each pass."""
    ctx = Context()  # none of the passes asks it for anything
    module = ModuleOp([graph.clone()])
    stages: dict[str, str] = {}
    for pass_ in passes:
        try:
            pass_.apply(ctx, module)
            module.verify()
        except PassFailedException as error:
            raise NoProgramError(f"{pass_.name}: {error}") from error
        except VerifyException as error:
            raise NoProgramError(
                f"pass '{pass_.name}' left an invalid operation: {error}"
            ) from error
        (only,) = module.ops
        stages[pass_.name] = _text(only)
    (only,) = module.ops
    only.detach()
    return stages, only


def _text(op: Operation) -> str:
    return str(op) + "\n"
