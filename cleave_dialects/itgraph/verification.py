"""The rules of levels; each refusal names the operator, the dim or value, the rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.dims import Dim, names_of
from cleave.dialects.itgraph.attributes import dims_inside
from cleave.dialects.itgraph.level import Level, Scope, facts_at, scope_of, value_text
from cleave.dialects.itgraph.parts import Contribution, State, View, tensor_type
from cleave.dialects.itgraph.tmap import Range, Shape
from cleave.dialects.tensor import TensorType
from cleave.dialects.wording import counted

################################################################################
# Levels                                                                       #
################################################################################


def verify_level(level: Level, arguments: int) -> None:
    """Check iterators, lets, views and body; the block is to have so many arguments."""
    _verify_structure(level, arguments)
    for position, view in enumerate(level.views):
        argument = level.view_arguments[position]
        what = f"view {value_text(argument, f'number {position}')}"
        _verify_tmap(level, view, what)
        if argument.type != view.type:
            level.refuse(f"{what} is {argument.type}, but its tile is {view.type}")
    for let in level.lets:
        _verify_table(level, let.table, let.index, f"let {let.name}")
    if (scope := scope_of(level)) is not None:
        _verify_names(level, scope)


def _verify_structure(level: Level, arguments: int) -> None:
    if len(level.tmaps) != len(level.sources):
        views, tmaps = len(level.sources), len(level.tmaps)
        level.refuse(f"has {counted(views, 'view')} but {counted(tmaps, 'tmap')}")
    if len(level.lookups) != len(level.tables):
        lets, tables = len(level.lookups), len(level.tables)
        level.refuse(f"has {counted(lets, 'let')} but {counted(tables, 'table')}")
    gathered = sum(len(tmap.gathers) for tmap in level.tmaps)
    if gathered != len(level.indices):
        level.refuse(
            f"gathers {counted(gathered, 'dim')} but has "
            f"{counted(len(level.indices), 'index vector')}"
        )
    views_and_states = f"but views and states are {arguments} together"
    if (given := len(level.body.block.args)) != arguments:
        level.refuse(f"body has {counted(given, 'argument')}, {views_and_states}")
    if level.placement is not None and len(level.placement) != arguments:
        level.refuse(f"places {len(level.placement)}, {views_and_states}")


def _verify_tmap(level: Level, view: View, what: str) -> None:
    tmap, source = view.tmap, tensor_type(view.source)
    if tmap.rank != source.rank:
        level.refuse(
            f"{what} has a tmap of rank {tmap.rank}, "
            f"but {source} has rank {source.rank}"
        )
    for dim, index in zip(tmap.gathers, view.gathers, strict=True):
        type_ = tensor_type(index)
        if not _is_integer(type_) or type_.dims != (tmap.tile[dim],):
            level.refuse(
                f"{what} gathers dim {dim} by {type_}, but the index vector of "
                f"{tmap.tile[dim]} rows has rank 1, that length and i32 or i64 elements"
            )


def _verify_table(level: Level, table: SSAValue, index: Shape, what: str) -> None:
    type_ = tensor_type(table)
    if not _is_integer(type_):
        level.refuse(f"{what} reads {type_}, but a table has i32 or i64 elements")
    if len(index) != type_.rank:
        level.refuse(
            f"{what} has {len(index)} indices for {type_} of rank {type_.rank}"
        )


def _is_integer(type_: TensorType) -> bool:
    return type_.element_type in (i32, i64)


################################################################################
# Names                                                                        #
################################################################################


def _verify_names(level: Level, outer: Scope) -> None:
    _verify_no_shadowing(level, outer)
    known = [range_.iterator for range_ in level.ranges]
    for let in level.lets:
        require_scope(level, let.index, outer.with_names(known), f"let {let.name}")
        known.append(let.name)
    for range_ in level.ranges:
        _verify_bounds(level, range_, outer)
    inside = outer.with_names(known)
    for position, (argument, view) in enumerate(
        zip(level.view_arguments, level.views, strict=True)
    ):
        what = f"view {value_text(argument, f'number {position}')}"
        require_scope(level, view.tmap.offsets, inside, what)
        _require_static(level, view.type, inside, what)
    for op in level.body.block.ops:
        _verify_operator(level, op, inside)


def _verify_no_shadowing(level: Level, outer: Scope) -> None:
    seen = set(outer.names)
    for name in level.own_names:
        if name in seen:
            where = "around it" if name in outer.names else "of its own"
            level.refuse(f"'{name}' shadows a name {where}")
        seen.add(name)


def _verify_bounds(level: Level, range_: Range, outer: Scope) -> None:
    """Bounds are known before the first iteration."""
    usable = outer.with_names(sorted(level.fixed_lets))
    for bound in (range_.lo, range_.hi):
        for name in sorted(names_of(bound) - {*usable.names}):
            if name in level.own_names:
                level.refuse(
                    f"bound {bound} of {range_.iterator} uses '{name}', which changes "
                    "from iteration to iteration"
                )
        require_scope(level, (bound,), usable, f"bound {bound} of {range_.iterator}")


def _verify_operator(level: Level, op: Operation, scope: Scope) -> None:
    if not isinstance(op, Operator | Level) and not op.has_trait(IsTerminator):
        level.refuse(f"holds '{op.name}' op, which is neither an operator nor a loop")
    for result in op.results:
        if isinstance(type_ := result.type, TensorType):
            _require_static(level, type_, scope, f"result of '{op.name}' op")
    if isinstance(op, Operator):
        op.verify_facts(facts_at(op))
        for attribute in (*op.properties.values(), *op.attributes.values()):
            require_scope(level, dims_inside(attribute), scope, f"'{op.name}' op")


def require_scope(level: Level, dims: Iterable[Dim], scope: Scope, what: str) -> None:
    """Refuse a name in one of the dims that is not in scope."""
    for dim in dims:
        for name in sorted(names_of(dim) - {*scope.names}):
            level.refuse(
                f"{what} uses '{name}' in {dim}, which is not in scope "
                f"(in scope: {', '.join(scope.names) or 'nothing'})"
            )


def _require_static(level: Level, type_: TensorType, scope: Scope, what: str) -> None:
    """Tiles have one shape in every iteration: only symbols of the plan name it."""
    for axis, dim in enumerate(type_.dims):
        for name in sorted(names_of(dim) & {*scope.iterators}):
            level.refuse(
                f"{what} has tile dim {axis} {dim}, which changes with '{name}'; tiles "
                "have one shape, so only symbols of the plan may be in it"
            )
    require_scope(level, type_.dims, scope, what)


################################################################################
# States of loops                                                              #
################################################################################


def verify_states(
    loop: Level,
    states: Sequence[State],
    arguments: Sequence[BlockArgument],
    finals: Sequence[SSAValue],
    contributions: Sequence[Contribution],
) -> None:
    """Check the types of states and contributions, and who reads a state."""
    if len(contributions) != len(states):
        loop.refuse(
            f"has {counted(len(states), 'state')} "
            f"but itgraph.next gives {counted(len(contributions), 'value')}"
        )
    scope = scope_of(loop)
    for position, (state, argument, final, given) in enumerate(
        zip(states, arguments, finals, contributions, strict=True)
    ):
        what = f"{state.kind} state {value_text(argument, f'number {position}')}"
        type_ = state.initial.type
        if argument.type != type_ or final.type != type_:
            loop.refuse(
                f"{what} begins as {type_}, but is {argument.type} in the loop and "
                f"{final.type} after it"
            )
        if state.kind != "carry" and argument.uses:
            loop.refuse(f"{what} is read in its loop, where only a carry may be")
        _verify_contribution(loop, state, given, what)
        if scope is not None:
            inside = scope.with_names(loop.own_names)
            require_scope(loop, state.offsets, inside, what)


def _verify_contribution(
    loop: Level, state: State, given: Contribution, what: str
) -> None:
    type_, value = tensor_type(state.initial), tensor_type(given.value)
    if state.kind == "tiles":
        if value.element_type != type_.element_type or value.rank != type_.rank:
            loop.refuse(f"{what} is {type_}, but {value} is no tile of it")
        if len(state.offsets) != type_.rank:
            loop.refuse(
                f"{what} has {counted(len(state.offsets), 'offset')}, "
                f"but {type_} has rank {type_.rank}"
            )
    elif value != type_:
        loop.refuse(f"{what} is {type_}, but itgraph.next gives {value}")
    if given.rescale is None:
        return
    if state.kind != "sum":
        loop.refuse(f"{what} is given a rescale, which only a sum may be")
    rescale = tensor_type(given.rescale)
    broadcast = rescale.rank == type_.rank and all(
        a in (1, b) for a, b in zip(rescale.dims, type_.dims, strict=True)
    )
    if not broadcast or not is_float(rescale.element_type):
        loop.refuse(
            f"{what} is {type_}, but its rescale {rescale} is not a float tile of "
            "the same rank whose dims are equal or 1"
        )
