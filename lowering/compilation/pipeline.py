"""One graph through the passes to TileLang, with the IR after each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.tilelang.text import EmissionError

INPUT = "input"
"""The name of the stage before all passes."""


class NoProgramError(Exception):
    """A graph that has no program under a configuration; the message says why."""


@dataclass(frozen=True)
class TileProgram:
    """
    A graph, scheduled and planned under a configuration.

    `stages` has the IR text after each pass by the pass's name, in order, and before
    them that of the graph, as `input`.
    """

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


def schedule(graph: GraphOp, configuration: Configuration) -> TileProgram:
    """
    Run the passes of a configuration on a copy of a graph.

    Raises NoProgramError where a pass refuses the graph or leaves invalid IR.
    """
    ctx = Context()  # none of the passes asks it for anything
    module = ModuleOp([graph.clone()])
    stages = {INPUT: _text(module)}
    for pass_ in configuration.passes():
        try:
            pass_.apply(ctx, module)
        except PassFailedException as error:
            raise NoProgramError(f"{pass_.name}: {error}") from error
        try:
            module.verify()
        except VerifyException as error:
            raise NoProgramError(
                f"pass '{pass_.name}' left an invalid operation: {error}"
            ) from error
        stages[pass_.name] = _text(module)
    (plan,) = module.ops
    if not isinstance(plan, PlanOp):
        raise NoProgramError(f"the passes left '{plan.name}', no itgraph.plan")
    return TileProgram(configuration, stages, plan)


def _text(module: ModuleOp) -> str:
    """The graphs or plans of a module, which says nothing else."""
    return "\n".join(str(op) for op in module.ops) + "\n"
