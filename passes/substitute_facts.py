"""`substitute-facts`: the concrete form of graphs and plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, substitute
from cleave.dialects.facts import Fact, Facts
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import DimAttr, FactAttr


@dataclass(frozen=True)
class SubstituteFactsPass(ModulePass):
    """
    Replace every symbol that a fact binds by its value, everywhere in graphs and plans.

    Bound symbols are no longer declared, and facts that hold for any value of the names
    left in them are dropped. Passes bind symbols and do not substitute them, so that IR
    reads like the maths; this is for looking at the concrete form.

    Before:
        algebra.graph @scores [M, L, D] where [M = 128, D = 64, D | L]
            (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
            -> (!algebra.tensor<[M, L], f32>) {
          %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[M, L], f32>
          algebra.return %s
        }
    After:
        algebra.graph @scores [L] where [64 | L]
            (%q: !algebra.tensor<[128, 64], f16>, %k: !algebra.tensor<[L, 64], f16>)
            -> (!algebra.tensor<[128, L], f32>) {
          %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[128, L], f32>
          algebra.return %s
        }
    """

    name = "substitute-facts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        old = [holder for holder in op.ops if isinstance(holder, GraphOp | PlanOp)]
        # All are substituted before one is replaced: a failure changes nothing.
        new = [substituted(holder) for holder in old]
        for before, after in zip(old, new, strict=True):
            Rewriter.replace_op(before, after)


def substituted(holder: GraphOp | PlanOp) -> GraphOp | PlanOp:
    """
    A copy of a graph or plan without bound symbols; see `SubstituteFactsPass`.

    Raises PassFailedException where a dim has no value: a tensor of no elements, or a
    division by zero.
    """
    values = holder.facts.binding
    new = holder.clone()
    for op in new.walk():
        try:
            substitute_in(op, values)
        except (VerifyException, ZeroDivisionError) as error:
            bound = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise PassFailedException(
                f"'{op.name}' op: {error} (with {bound})"
            ) from error
    unbound = [name for name in holder.symbol_names if name not in values]
    new.symbols = ArrayAttr(StringAttr(name) for name in unbound)
    new.where = ArrayAttr(
        FactAttr(fact) for fact in _facts_left(holder.facts, values, unbound)
    )
    return new


def substitute_in(op: Operation, values: Mapping[str, Dim]) -> None:
    op.properties = {k: _replaced(v, values) for k, v in op.properties.items()}
    op.attributes = {k: _replaced(v, values) for k, v in op.attributes.items()}
    defined: list[SSAValue] = list(op.results)
    for region in op.regions:
        defined += region.block.args
    for value in defined:
        Rewriter.replace_value_with_new_type(value, _replaced(value.type, values))


def _replaced(attribute: Attribute, values: Mapping[str, Dim]) -> Attribute:
    """The attribute or type with the names in its dims and facts replaced."""
    match attribute:
        case DimAttr():
            return DimAttr(substitute(attribute.data, values))
        case FactAttr():
            return FactAttr(attribute.data.substitute(values))
        case ArrayAttr():
            return ArrayAttr(_replaced(element, values) for element in attribute)
        case DictionaryAttr():
            entries = attribute.data.items()
            return DictionaryAttr({k: _replaced(v, values) for k, v in entries})
        case ParametrizedAttribute():
            parameters = [_replaced(p, values) for p in attribute.parameters]
            return type(attribute).new(parameters)
        case _:
            return attribute


def _facts_left(
    facts: Facts, values: Mapping[str, Dim], symbols: Iterable[str]
) -> Iterable[Fact]:
    """The facts with their names replaced, without those that then say nothing."""
    nothing_known = Facts(symbols=symbols)
    for fact in facts:
        known = fact.substitute(values)
        if known == fact or not _holds(known, nothing_known):
            yield known


def _holds(fact: Fact, facts: Facts) -> bool:
    match fact.relation:
        case "|":
            return facts.divides(fact.lhs, fact.rhs)
        case "=":
            return facts.equal(fact.lhs, fact.rhs)
        case ">=":
            return facts.at_most(fact.rhs, fact.lhs)
        case "<=":
            return facts.at_most(fact.lhs, fact.rhs)
