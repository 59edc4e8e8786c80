"""Which graph of a module an operation says that it equals; which names are free."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.partitioning.piece import KERNEL

EQUALS = "equals"
"""The attribute of a candidate or a plan that names the graph it equals."""


def equals(op: Operation) -> str | None:
    """The graph that a candidate, a piece of one, or a plan says that it equals."""
    return named_by(op, EQUALS)


def named_by(op: Operation, attribute: str) -> str | None:
    """What `equals` and the like name, of an operation or of what it is a piece of."""
    attributes = op.attributes
    if isinstance(kernel := attributes.get(KERNEL), DictionaryAttr):
        attributes = {**kernel.data, **attributes}
    name = attributes.get(attribute)
    return name.string_value() if isinstance(name, SymbolRefAttr) else None


def is_original(graph: GraphOp) -> bool:
    """Whether a graph is neither a candidate nor a piece of a graph."""
    return EQUALS not in graph.attributes and KERNEL not in graph.attributes


def have_candidates(ops: Iterable[Operation]) -> set[str]:
    """The names of the graphs that others say that they equal."""
    pairs = ((equals(op), op.get_attr_or_prop("sym_name")) for op in ops)
    return {name for name, own in pairs if name and own != StringAttr(name)}


def symbol_names(module: ModuleOp) -> set[str]:
    """The names that are taken in a module."""
    names = (op.get_attr_or_prop("sym_name") for op in module.ops)
    return {name.data for name in names if isinstance(name, StringAttr)}
