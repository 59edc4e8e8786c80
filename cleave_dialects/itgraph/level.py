"""What a kernel and a loop share: iterators, lets, views, scope and placement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.operator import MEMORY, Operator
from cleave.dialects.facts import Facts
from cleave.dialects.itgraph.attributes import LookupAttr, RangeAttr, TMapAttr
from cleave.dialects.itgraph.memory import Memory, MemoryAttr
from cleave.dialects.itgraph.parts import Let, View
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.itgraph.tmap import Lookup, Range, names_in
from cleave.dialects.tensor import TensorType

################################################################################
# Levels                                                                       #
################################################################################


class Level(IRDLOperation, ABC):
    """
    A loop over iterators whose body sees tiles of tensors.

    The block arguments of the body are the views, then what a subclass adds.
    """

    iterators = prop_def(ArrayAttr[RangeAttr])
    lookups = prop_def(ArrayAttr[LookupAttr])
    tmaps = prop_def(ArrayAttr[TMapAttr])
    placement = opt_prop_def(ArrayAttr[Attribute])
    """For each block argument a `MemoryAttr`, or a `UnitAttr` where none is decided."""

    sources = var_operand_def(TensorType)
    indices = var_operand_def(TensorType)
    """The index vectors of all gathers, in the order of the views and their dims."""
    tables = var_operand_def(TensorType)
    """The tensor that each let reads."""

    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def ranges(self) -> tuple[Range, ...]:
        return tuple(iterator.range for iterator in self.iterators)

    @property
    def views(self) -> tuple[View, ...]:
        indices = iter(self.indices)
        return tuple(
            View(
                source,
                tmap := attribute.tmap,
                tuple(next(indices) for _ in tmap.gathers),
                memory_of(argument),
                argument.name_hint,
            )
            for source, attribute, argument in zip(
                self.sources, self.tmaps, self.view_arguments, strict=True
            )
        )

    @property
    def lets(self) -> tuple[Let, ...]:
        return tuple(
            Let(attribute.lookup.name, table, attribute.lookup.index)
            for attribute, table in zip(self.lookups, self.tables, strict=True)
        )

    @property
    def view_arguments(self) -> tuple[BlockArgument, ...]:
        return self.body.block.args[: len(self.sources)]

    @property
    def own_names(self) -> tuple[str, ...]:
        """Iterators, then lets."""
        return (
            *(attribute.iterator.data for attribute in self.iterators),
            *(attribute.let.data for attribute in self.lookups),
        )

    @property
    def fixed_lets(self) -> frozenset[str]:
        """Lets that bounds may use: they do not depend on the level's own iterators."""
        varying = {attribute.iterator.data for attribute in self.iterators}
        for let in self.lets:
            if names_in(let.index) & varying:
                varying.add(let.name)
        return frozenset(let.name for let in self.lets if let.name not in varying)

    @abstractmethod
    def with_views(self, views: Sequence[View], lets: Sequence[Let]) -> Level:
        """
        A new level that takes over the body of this one; the caller brings the block
        arguments in line with `views`.
        """

    @abstractmethod
    def result_memory(self, result: OpResult) -> Memory | None:
        """Where a result of this level lives."""

    def refuse(self, rule: str) -> NoReturn:
        raise VerifyException(f"'{self.name}' op: {rule}")


def level_operands(
    views: Sequence[View], lets: Sequence[Let]
) -> list[Sequence[SSAValue]]:
    """Operands of the three segments of a level."""
    return [
        [view.source for view in views],
        [index for view in views for index in view.gathers],
        [let.table for let in lets],
    ]


def level_properties(
    ranges: Sequence[Range],
    views: Sequence[View],
    lets: Sequence[Let],
    placement: Sequence[Memory | None],
) -> dict[str, Attribute | None]:
    """Properties of a level; `placement` has an element for each block argument."""
    return {
        "iterators": ArrayAttr(RangeAttr(range_) for range_ in ranges),
        "lookups": ArrayAttr(LookupAttr(Lookup(x.name, x.index)) for x in lets),
        "tmaps": ArrayAttr(TMapAttr(view.tmap) for view in views),
        "placement": _placement_attribute(placement),
    }


def value_text(value: SSAValue, otherwise: str) -> str:
    """The name of a value in messages."""
    return f"%{value.name_hint}" if value.name_hint else otherwise


################################################################################
# Scope                                                                        #
################################################################################


@dataclass(frozen=True)
class Scope:
    """The names that may be used at a place, outermost first."""

    symbols: tuple[str, ...]
    iterators: tuple[str, ...] = ()
    """Iterators and lets of the levels around the place."""

    def with_names(self, names: Sequence[str]) -> Scope:
        return Scope(self.symbols, (*self.iterators, *names))

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.symbols, *self.iterators)


def levels_around(op: Operation) -> Iterator[Level]:
    """The levels that `op` stands in, innermost first; not `op` itself."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, Level):
            yield parent
        parent = parent.parent_op()


def plan_of(op: Operation) -> PlanOp | None:
    """The plan that `op` stands in; None for an op that is not in a plan (yet)."""
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, PlanOp):
        parent = parent.parent_op()
    return parent


def scope_of(op: Operation) -> Scope | None:
    """The names that `op` may use, without its own; None if it is in no plan."""
    if (plan := plan_of(op)) is None:
        return None
    outer = reversed(list(levels_around(op)))
    return Scope(
        tuple(plan.symbol_names), tuple(name for x in outer for name in x.own_names)
    )


def facts_at(op: Operation) -> Facts:
    """The facts of the plan, with the ranges of the iterators around `op`."""
    plan = plan_of(op)
    facts = Facts(()) if plan is None else plan.facts
    ranges = {r.iterator: (r.lo, r.hi) for x in levels_around(op) for r in x.ranges}
    return facts.extend(ranges=ranges) if ranges else facts


################################################################################
# Placement                                                                    #
################################################################################


def memory_of(value: SSAValue) -> Memory | None:
    """
    Where a tile lives; None where `plan-memory` has not decided. Tensors of a plan live
    in GMEM, the results of a loop where its states do.
    """
    owner = value.owner
    around = owner.parent_op()
    attribute: Attribute | None = None
    if isinstance(around, PlanOp):
        return Memory("gmem")
    if isinstance(value, BlockArgument) and isinstance(around, Level):
        attribute = around.placement.data[value.index] if around.placement else None
    elif isinstance(value, OpResult):
        if isinstance(value.op, Level):
            return value.op.result_memory(value)
        attribute = value.op.get_attr_or_prop(MEMORY)
    return attribute.data if isinstance(attribute, MemoryAttr) else None


def set_memory(value: SSAValue, memory: Memory | None) -> None:
    """
    Decide where a view, a loop state or the result of an operator lives.

    Raises:
        ValueError: a value that has no memory of its own (a result of a level, a tensor
            of the plan), or a copy that would go nowhere.
    """
    owner = value.owner
    level = owner.parent_op()
    if isinstance(value, BlockArgument) and isinstance(level, Level):
        placement = [memory_of(argument) for argument in level.body.block.args]
        placement[value.index] = memory
        level.placement = _placement_attribute(placement)
        return
    if not isinstance(owner, Operator) or isinstance(level, PlanOp):
        raise ValueError(f"{value_text(value, 'a value')} has no memory of its own")
    # The memory of a copy is its parameter, that of other results an annotation.
    holder = owner.properties if MEMORY in owner.properties else owner.attributes
    if memory is not None:
        holder[MEMORY] = MemoryAttr(memory)
    elif holder is owner.properties:
        raise ValueError(f"{value_text(value, 'a copy')} is copied to some memory")
    else:
        holder.pop(MEMORY, None)


def _placement_attribute(
    placement: Sequence[Memory | None],
) -> ArrayAttr[Attribute] | None:
    if not any(placement):
        return None
    return ArrayAttr(UnitAttr() if m is None else MemoryAttr(m) for m in placement)
