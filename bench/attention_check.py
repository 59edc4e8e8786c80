"""One attention kernel on one case: families of inputs, references, judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Attribute
from xdsl.parser import Parser

from bench.attention_cases import AttentionCase, AttentionKernel
from bench.attention_reference import eager, exact
from cleave.dialects.algebra import Algebra
from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph import ItGraph
from cleave.lowering.compilation.pipeline import TileProgram, prepare, schedule
from cleave.lowering.gate.executors import TorchExecutor
from cleave.lowering.gate.families import Families
from cleave.lowering.gate.rule import Judgement, judge, overflows
from cleave.passes.drop_shifts import drop_shifts

if TYPE_CHECKING:
    import torch

ALWAYS = ("amplitude 1",)
IN_TURN = (
    "amplitude 30",
    "large mean of %k",
    "logits near -50000",
    "amplitude 300",
    "tiny values",
    "equal elements of %v",
    "amplitude 6",
)
"""Families of which each case gets one."""
OF_BIASES = (
    "%bias infinite, some rows hidden",
    "%bias infinite, one key a row",
    "%bias infinite, half of it hidden",
)
RESULTS = ("o", "lse")

Run = Callable[..., Sequence["torch.Tensor"]]
"""A kernel: from q, k, v and a bias to the output and the log-sum-exp."""


@dataclass(frozen=True)
class Checked:
    """What a kernel gave on inputs of a family: a judgement for each result."""

    family: str
    judgements: tuple[Judgement, ...]

    @property
    def is_right(self) -> bool:
        return all(judgement.is_right for judgement in self.judgements)

    @property
    def reasons(self) -> list[str]:
        return [
            f"{self.family}: {name}: {judgement}"
            for name, judgement in zip(RESULTS, self.judgements, strict=True)
            if not judgement.is_right
        ]


def families_of(case: AttentionCase, number: int) -> list[str]:
    """The names of the families for the case of that number in the sweep."""
    chosen = [*ALWAYS, IN_TURN[number % len(IN_TURN)]]
    if case.kernel.mask == "bias":
        chosen.append(OF_BIASES[number % len(OF_BIASES)])
    return chosen


def graph_of(text: str) -> GraphOp:
    """The graph in some IR."""
    context = Context()
    for dialect in (Builtin, Algebra, ItGraph):
        context.load_dialect(dialect)
    (graph,) = Parser(context, text).parse_module().ops
    assert isinstance(graph, GraphOp)
    graph.verify()
    return graph


def program_of(
    kernel: AttentionKernel, sizes: dict[str, int] | None = None
) -> TileProgram:
    """A kernel through the passes; raises NoProgramError where one refuses it."""
    prepared = prepare(graph_of(kernel.graph(sizes)))
    return schedule(prepared, kernel.configuration(sizes))


def inputs_of(
    case: AttentionCase, names: Sequence[str], device: torch.device, seed: int = 0
) -> dict[str, list[torch.Tensor]]:
    """Inputs of the named families; a family that a case has none of is left out."""
    plain = _without_shifts(case.kernel)
    sizes = {**case.sizes, "D": case.kernel.qk_dim, "E": case.kernel.v_dim}
    found: dict[str, list[torch.Tensor]] = {}
    for family in Families(plain, sizes, TorchExecutor(device), seed):
        if family.name in names and (inputs := family.draw()) is not None:
            found[family.name] = inputs
        if len(found) == len(names):
            break
    return found


@cache
def _without_shifts(kernel: AttentionKernel) -> GraphOp:
    graph = graph_of(kernel.written())
    drop_shifts(graph)
    return graph


@cache
def _elements(kernel: AttentionKernel) -> tuple[Attribute, tuple[Attribute, ...]]:
    """The types of the elements of inputs and of results."""
    graph = graph_of(kernel.graph())
    return graph.input_types[0].element_type, tuple(
        type_.element_type for type_ in graph.output_types
    )


def check(
    case: AttentionCase, run: Run, family: str, inputs: Sequence[torch.Tensor]
) -> Checked:
    """
    A kernel's results against float64, by the rule of the numerical gate. Where eager
    mode overflows in float16, its yardstick is eager mode in bfloat16.
    """
    import torch

    references = exact(case.kernel, inputs)
    low, elements = _elements(case.kernel)
    yardstick: list[torch.Tensor] | None = None
    own: torch.dtype = getattr(torch, dtype_name(low))
    for dtype in (own, torch.bfloat16):
        results = [result.double() for result in eager(case.kernel, inputs, dtype)]
        if not any(map(_overflows(torch), results, references, elements)):
            yardstick = results
            break
    outputs = [result.double() for result in run(*inputs)]
    judgements = [
        judge(torch, output, reference, eager_one, element)
        for output, reference, eager_one, element in zip(
            outputs, references, yardstick or [None, None], elements, strict=True
        )
    ]
    return Checked(family, tuple(judgements))


def _overflows(torch: Any) -> Callable[[Any, Any, Any], bool]:
    return lambda result, reference, element: overflows(
        torch, result, reference, element
    )
