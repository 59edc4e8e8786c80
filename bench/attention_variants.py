"""Attention in the variants whose times are compared, in several configurations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from bench.attention_check import graph_of
from cleave.dialects.itgraph import PlanOp
from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.compilation.configuration import tiles_text
from cleave.lowering.compile_workers import CompileJob, compile_all
from cleave.lowering.hardware import load_hardware
from cleave.lowering.tilelang.forms import FORMS
from cleave.lowering.tilelang.module import emit_module
from cleave.lowering.tilelang.text import EmissionError
from cleave.passes.insert_casts import InsertCastsPass
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import ScheduleBlocksPass
from cleave.passes.schedule_masks import ScheduleMasksPass
from cleave.passes.schedule_reductions import ScheduleReductionsPass
from cleave.passes.sink_scales import SinkScalesPass
from cleave.passes.stabilize_exp import StabilizeExpPass

Variant: TypeAlias = Literal["unsafe", "safe", "causal"]

HEADS, LENGTH = 32, 4096
DIMS = (64, 128)
VARIANTS: tuple[Variant, ...] = ("unsafe", "safe", "causal")
TILES = {
    64: ((128, 128), (128, 192), (192, 128), (128, 64)),
    128: ((128, 128), (128, 64), (128, 96), (64, 128)),
}
"""Queries and keys, by head dim."""
STAGES = (2, 3)
GRAPH = """
algebra.graph @attention_{variant} [H, M, L, D]
    where [H = {heads}, M = {length}, L = {length}, D = {dim}]
    (%q: !algebra.tensor<[H, M, D], bf16>, %k: !algebra.tensor<[H, L, D], bf16>,
     %v: !algebra.tensor<[H, L, D], bf16>)
    -> (!algebra.tensor<[H, M, D], bf16>) {{
  %width = algebra.constant D : !algebra.tensor<[], f32>
  %root = algebra.sqrt %width
  %qk = algebra.matmul %q, %k transpose_rhs
  %scaled = algebra.div %qk, %root
  {mask}
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}}
"""
MASK = """\
%least = algebra.constant -inf : !algebra.tensor<[], f32>
  %seen = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s = algebra.select %seen, %scaled, %least"""


@dataclass
class Candidate:
    """A variant in one configuration, on its way."""

    variant: Variant
    dim: int
    tile: tuple[int, int]
    stages: int
    form: str
    built: BuiltPlan | None = None
    reasons: list[str] = field(default_factory=list[str])
    ms: float | None = None
    spread: float | None = None

    @property
    def name(self) -> str:
        queries, keys = self.tile
        return (
            f"{self.variant} d={self.dim} {queries}x{keys} {self.stages} stages, "
            f"{self.form}"
        )

    def source(self) -> str:
        """
        The generated module. Raises PassFailedException or EmissionError for a
        configuration that this kernel cannot have.
        """
        text = GRAPH.format(
            variant=self.variant,
            heads=HEADS,
            length=LENGTH,
            dim=self.dim,
            mask=MASK if self.variant == "causal" else "",
        )
        if self.variant != "causal":
            text = text.replace("exp %s\n", "exp %scaled\n")
        module = ModuleOp([graph_of(text).clone()])
        for pass_ in self._passes():
            pass_.apply(Context(), module)
            module.verify()
        (plan,) = module.ops
        assert isinstance(plan, PlanOp)
        return emit_module(plan)

    def _passes(self) -> list[ModulePass]:
        queries, keys = self.tile
        safe = [] if self.variant == "unsafe" else [StabilizeExpPass()]
        return [
            *safe,
            InsertCastsPass(),
            SinkScalesPass(),
            ScheduleBlocksPass(tile=tiles_text({"H": 1, "M": queries})),
            ScheduleReductionsPass(tile=tiles_text({"L": keys})),
            ScheduleMasksPass(),
            PlanMemoryPass(threads=2 * queries, stages=self.stages, form=self.form),
        ]

    def literal(self) -> dict[str, Any]:
        return {
            "variant": self.variant,
            "d": self.dim,
            "tile": list(self.tile),
            "stages": self.stages,
            "form": self.form,
            "ms": self.ms,
            "spread": self.spread,
            "reasons": self.reasons,
        }


def candidates() -> Iterator[Candidate]:
    """All variants in all configurations."""
    for dim in DIMS:
        choices = product(VARIANTS, TILES[dim], STAGES, FORMS)
        for variant, tile, stages, form in choices:
            yield Candidate(variant, dim, tile, stages, form)


def build(going: Sequence[Candidate], folder: Path, workers: int | None) -> None:
    """Compile what has a program; what is refused gets a reason."""
    hardware = load_hardware("h200")
    written: list[tuple[Candidate, CompileJob]] = []
    for number, candidate in enumerate(going):
        try:
            source = candidate.source()
        except (PassFailedException, EmissionError) as error:
            candidate.reasons.append(str(error))
            continue
        path = folder / f"candidate_{number}.py"
        path.write_text(source, encoding="utf-8")
        job = CompileJob(path.stem, path, hardware.arch, path.with_suffix(""))
        written.append((candidate, job))
    outcomes = compile_all([job for _, job in written], workers=workers)
    for (candidate, _), outcome in zip(written, outcomes, strict=True):
        candidate.built = outcome.built
        if outcome.built is None:
            candidate.reasons.append(outcome.reason or "not built")
        else:
            candidate.reasons += outcome.built.legality(hardware)
