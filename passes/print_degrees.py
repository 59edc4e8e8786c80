"""`print-degrees`: say what becomes of each value when exponents are shifted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.exponents.analysis import Exponential, Exponents
from cleave.passes.exponents.propagation import dims_of

EXPONENTIALS = "exponentials"
"""The attribute of a graph that says which of its exponentials may be shifted."""
GAINS = "gains"
"""The attribute with what is added to each result."""
SCALED, SHIFTED = "scaled_by", "shifted_by"
"""The attributes of an operator with the degrees of its result."""


@dataclass(frozen=True)
class PrintDegreesPass(ModulePass):
    """
    Annotate graphs with what `stabilize-exp` goes by (DESIGN section 7).

    If the exponent of `%p` is shifted by c, a value with `scaled_by = "2 %p"` is
    multiplied by `exp(2 * c)`, one with `shifted_by = "%p"` becomes larger by c, and
    others stay as they are. Exponentials that can only be shifted together go by the
    name of the first. `exponentials` tells for each over which dims a reference is
    taken, or why it is not shifted; `gains` is what each result of the graph becomes
    larger by.

    Before:
        algebra.graph @lse [M, L] (%s: ...) -> (...) {
          %p = algebra.exp %s : !algebra.tensor<[M, L], f32>
          %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
          %o = algebra.log %l : !algebra.tensor<[M, 1], f32>
          algebra.return %o
        }
    After:
        algebra.graph @lse [M, L] (%s: ...) -> (...)
            attributes {exponentials = ["%p: reference over dim 1 (L)"],
                        gains = ["%p"]} {
          %p = algebra.exp %s {scaled_by = "%p"} : ...
          %l = algebra.reduce_sum %p dim 1 {scaled_by = "%p"} : ...
          %o = algebra.log %l {shifted_by = "%p"} : ...
          algebra.return %o
        }
    """

    name = "print-degrees"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                annotate(graph)


def annotate(graph: GraphOp) -> None:
    """Do it for one graph; see `PrintDegreesPass`."""
    exponents = Exponents(graph)
    wording = exponents.wording
    for op in graph.operators:
        (result,) = op.results
        degrees = {SCALED: exponents.scale(result), SHIFTED: exponents.offset(result)}
        for name, form in degrees.items():
            op.attributes.pop(name, None)
            if form:
                op.attributes[name] = StringAttr(wording.form(exponents.named(form)))
    lines = list(_lines(exponents))
    gains = [
        wording.form(exponents.named(exponents.offset(value)))
        for value in graph.return_op.values
    ]
    if lines:
        graph.attributes[EXPONENTIALS] = ArrayAttr(map(StringAttr, lines))
        graph.attributes[GAINS] = ArrayAttr(map(StringAttr, gains))


def _lines(exponents: Exponents) -> Iterator[str]:
    for exponential in exponents.exponentials.values():
        name = exponents.wording.name(exponential.result)
        yield f"{name}: {exponential.reason or _shift(exponential)}"


def _shift(exponential: Exponential) -> str:
    if not exponential.reduced:
        return "shifted by itself"
    shape = dims_of(exponential.exponent)
    dims = [f"{axis} ({shape[axis]})" for axis in sorted(exponential.reduced)]
    return f"reference over dim {' and '.join(dims)}"
