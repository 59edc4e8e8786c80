"""`-t tilelang`: print each planned plan of a module as a Python module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target

from cleave.dialects.itgraph.plan import PlanOp


@dataclass(frozen=True)
class TileLangTarget(Target):
    """TileLang source; a module of several plans prints one after the other."""

    name = "tilelang"

    fast_math: bool = False
    arch: str = "sm_90a"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from cleave.lowering.hardware import HardwareError
        from cleave.lowering.tilelang.module import emit_module
        from cleave.lowering.tilelang.text import EmissionError

        plans = [op for op in module.ops if isinstance(op, PlanOp)]
        if not plans:
            raise PassFailedException(
                "target tilelang: the module holds no itgraph.plan; run "
                "schedule-blocks, schedule-reductions and plan-memory first"
            )
        try:
            texts = [emit_module(plan, self.fast_math, self.arch) for plan in plans]
        except (EmissionError, HardwareError) as error:
            raise PassFailedException(f"target tilelang: {error}") from error
        output.write("\n\n".join(texts))
