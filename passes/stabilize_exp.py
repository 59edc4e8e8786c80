"""`stabilize-exp`: shift exponents by references, so that nothing overflows."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block
from xdsl.passes import ModulePass

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.exponents.analysis import Exponents
from cleave.passes.exponents.shifting import ShiftedGraph

KEPT_EXPONENTS = "kept_exponents"
"""The attribute that says which exponents were left alone, and why."""


@dataclass(frozen=True)
class StabilizeExpPass(ModulePass):
    """
    Shift the exponent of every exponential by a reference, its maximum over the dims
    that are reduced, wherever that changes no result (DESIGN section 7; beyond the
    paper, whose kernels overflow). What is left of the shift is undone:

    * it is added to results that it is missing from, such as a log-sum-exp;
    * sums with references of their own are rescaled before they are added up: those of
      the parts of a split (FlashDecoding), of several sets of keys, an attention sink;
    * where a row may be masked as a whole, its divisor gets one more term, which is inf
      in such rows and 0 in others, so that they become 0; a log-sum-exp becomes -inf.

    Exponentials whose results would change, or that are shifted already, are left
    alone, and `kept_exponents` gives the operator and the rule for each.

    Before:
        %p = algebra.exp %s : !algebra.tensor<[M, L], f32>
        %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
        %n = algebra.div %p, %l : !algebra.tensor<[M, L], f32>
        %lse = algebra.log %l : !algebra.tensor<[M, 1], f32>
        algebra.return %n, %lse
    After:
        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
        %shifted = algebra.sub %s, %r : !algebra.tensor<[M, L], f32>
        %p = algebra.exp %shifted : !algebra.tensor<[M, L], f32>
        %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
        %n = algebra.div %p, %l : !algebra.tensor<[M, L], f32>
        %0 = algebra.log %l : !algebra.tensor<[M, 1], f32>
        %lse = algebra.add %0, %r : !algebra.tensor<[M, 1], f32>
        algebra.return %n, %lse
    """

    name = "stabilize-exp"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        graphs = [graph for graph in op.ops if isinstance(graph, GraphOp)]
        # Every graph is rebuilt before one is replaced: a failure changes nothing.
        for change in [_stabilized(graph) for graph in graphs]:
            change.apply()


@dataclass(frozen=True)
class _Change:
    exponents: Exponents
    body: Block | None
    """The new body, if an exponent is shifted."""

    def apply(self) -> None:
        graph = self.exponents.graph
        if self.body is not None:
            graph.body.detach_block(graph.body.block)
            graph.body.add_block(self.body)
        kept = [
            f"{self.exponents.wording.name(exponential.result)}: {exponential.reason}"
            for exponential in self.exponents.exponentials.values()
            if exponential.reason is not None
        ]
        if kept:
            graph.attributes[KEPT_EXPONENTS] = ArrayAttr(map(StringAttr, kept))


def _stabilized(graph: GraphOp) -> _Change:
    exponents = Exponents(graph)
    return _Change(
        exponents, ShiftedGraph(exponents).block if exponents.shifted else None
    )


def stabilize(graph: GraphOp) -> None:
    """Do it for one graph; see `StabilizeExpPass`."""
    _stabilized(graph).apply()
