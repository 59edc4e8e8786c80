"""Which reductions of a level become loops next, and which of them share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim, names_of
from cleave.dialects.facts import Facts
from cleave.passes.scheduling.tiles import TileSizes


@dataclass(frozen=True)
class IterableReduction:
    """A reduction over more than one tile."""

    op: Operator
    symbol: str
    """The symbol whose tile size divides the reduced dim."""
    extent: Dim
    """The reduced dim: the symbol, or an expression of it such as `L floordiv s`."""


def iterable_reductions(
    block: Block, sizes: TileSizes, facts: Facts
) -> list[IterableReduction]:
    """The reductions of a level whose extent exceeds their tile, in order."""
    found: list[IterableReduction] = []
    for op in block.ops:
        if not isinstance(op, Operator) or op.REDUCTION is None:
            continue
        (extent,) = op.expression.reduced
        named = sorted(names_of(extent) & sizes.sizes.keys())
        if len(named) > 1:
            raise PassFailedException(
                f"'{op.name}' op: reduces {extent}, "
                f"for which tiles are given by both {named[0]} and {named[1]}"
            )
        if named and not facts.at_most(extent, _size(named[0], sizes)):
            found.append(IterableReduction(op, named[0], extent))
    return found


def _size(name: str, sizes: TileSizes) -> Dim:
    """The tile as a number where it is one, so that facts can compare it."""
    number = sizes.sizes[name]
    return sizes.of(name) if number is None else number


def last_wave(
    reductions: Sequence[IterableReduction],
) -> list[IterableReduction]:
    """Those from which no other leads to the end of the level (paper section 5.3)."""
    ops = {reduction.op for reduction in reductions}
    return [r for r in reductions if not ops & set(_users(r.op))]


def horizontal_groups(
    wave: Sequence[IterableReduction], block: Block
) -> list[list[IterableReduction]]:
    """
    Reductions over one dim that share a producer, directly or through others.

    Inputs count as producers, so that a tile loaded once feeds every matmul of it.
    """
    groups: list[tuple[set[SSAValue], list[IterableReduction]]] = []
    for reduction in wave:
        sources = set(_upstream(reduction.op, block))
        members = [reduction]
        apart: list[tuple[set[SSAValue], list[IterableReduction]]] = []
        for values, group in groups:
            same_dim = group[0].extent == reduction.extent
            if same_dim and values & sources:
                sources |= values
                members = [*group, *members]
            else:
                apart.append((values, group))
        groups = [*apart, (sources, members)]
    return [group for _, group in groups]


def _users(op: Operation) -> Iterator[Operation]:
    """Every operation of the level that depends on `op`."""
    block = op.parent_block()
    seen: set[Operation] = set()
    stack = [op]
    while stack:
        for result in stack.pop().results:
            for use in result.uses:
                user = use.operation
                while user.parent_block() is not block:
                    # A use inside of a loop is a use by the loop.
                    user = _parent(user)
                if user not in seen:
                    seen.add(user)
                    stack.append(user)
    yield from seen


def _parent(op: Operation) -> Operation:
    parent = op.parent_op()
    if parent is None:
        raise ValueError("a value is used outside of its level")
    return parent


def _upstream(op: Operation, block: Block) -> Iterator[SSAValue]:
    """Everything that `op` is computed from, except leaves that cost nothing."""
    seen: set[SSAValue] = set()
    stack = [op]
    while stack:
        for operand in stack.pop().operands:
            if operand in seen:
                continue
            seen.add(operand)
            owner = operand.owner
            if isinstance(owner, Operation) and owner.parent_block() is block:
                stack.append(owner)
    for value in seen:
        owner = value.owner
        if isinstance(owner, Block) or owner.operands:
            yield value
