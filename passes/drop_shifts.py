"""`drop-shifts`: remove shifts of exponents that change nothing, and roundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType
from cleave.passes.exponents.invariance import (
    Use,
    candidates,
    reaches_exponent,
    why_not_free,
)
from cleave.passes.exponents.wording import Wording

DROPPED = "dropped"
"""The attribute of a graph that says what was removed from it."""
KEPT_SHIFTS = "kept_shifts"
"""The attribute that says which shifts by a maximum were not, and why."""

_PROBES = (-1e9, -2.5, -1e-9, 0.0, 1e-9, 0.75, 3e7)
"""Numbers on which an operator that changes none of them is taken for the identity."""


@dataclass(frozen=True)
class DropShiftsPass(ModulePass):
    """
    Reduce a graph to plain algebra: without the maximum that a softmax subtracts from
    its exponents, and without casts that only round (DESIGN section 7). The search then
    sees the same graph whether or not it was written safely; `stabilize-exp` shifts
    exponents again.

    A value is dropped if the results are the same whatever stands in its place, which
    is proved by degrees (`exponents.invariance`), not found by its looks: references, a
    maximum clamped to something finite and a constant offset go as well, and of
    `m + log(sum(exp(s - m)))` both uses. What was removed is listed in `dropped`. A
    maximum that exponents are shifted by and that the results depend on stays, and
    `kept_shifts` gives the operator and the rule.

    Before:
        %m = algebra.reduce_max %s dim 1 : !algebra.tensor<[M, 1], f32>
        %shifted = algebra.sub %s, %m : !algebra.tensor<[M, L], f32>
        %p = algebra.exp %shifted : !algebra.tensor<[M, L], f32>
        %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
        %n = algebra.div %p, %l : !algebra.tensor<[M, L], f32>
        %1 = algebra.cast %n to f16 : !algebra.tensor<[M, L], f16>
        %o = algebra.matmul %1, %v : !algebra.tensor<[M, D], f32>
    After, with `attributes {dropped = ["%1: rounds", "%m: shifts by [M, 1]"]}`:
        %p = algebra.exp %s : !algebra.tensor<[M, L], f32>
        %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
        %n = algebra.div %p, %l : !algebra.tensor<[M, L], f32>
        %o = algebra.matmul %n, %v : !algebra.tensor<[M, D], f32>
    """

    name = "drop-shifts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                drop_shifts(graph)


def drop_shifts(graph: GraphOp) -> None:
    """Do it for one graph; see `DropShiftsPass`."""
    wording = Wording(graph.body.block)
    dropped = [f"{wording.name(value)}: rounds" for value in _drop_roundings(graph)]
    shifts = _Shifts(graph, wording)
    shifts.drop()
    for name, texts in (
        (DROPPED, dropped + shifts.dropped),
        (KEPT_SHIFTS, shifts.kept),
    ):
        if texts:
            graph.attributes[name] = ArrayAttr(StringAttr(text) for text in texts)


################################################################################
# Roundings                                                                    #
################################################################################


def _drop_roundings(graph: GraphOp) -> Iterator[SSAValue]:
    for op in list(graph.operators):
        if not op.ONLY_ROUNDS:
            continue
        elements = (op.operand_types[0].element_type, op.result_type.element_type)
        result, source = op.results[0], op.operands[0]
        if all(map(is_float, elements)) and _put(source, result):
            yield result
            Rewriter.erase_op(op)


def _put(new: SSAValue, old: SSAValue) -> bool:
    """
    Put a value in the place of another one that it is equal to, where everything that
    uses that accepts the type: another float, or dims of size 1 that are broadcast.
    """
    types: dict[SSAValue, TensorType] = {old: _type_of(new)}
    for op in cast(GraphOp, old.owner.parent_op()).operators:
        if not any(operand in types for operand in op.operands):
            continue
        operands = [types.get(operand, _type_of(operand)) for operand in op.operands]
        try:
            type_ = op.infer_type(operands, op.params)
        except VerifyException:
            return False
        if type_ != op.result_type:
            if not op.ELEMENTWISE:
                return False
            types[op.results[0]] = type_
    graph = cast(GraphOp, old.owner.parent_op())
    for value in graph.return_op.values:
        if value in types and types[value].dims != _type_of(value).dims:
            return False
    del types[old]
    old.replace_all_uses_with(new)
    for value, type_ in types.items():
        Rewriter.replace_value_with_new_type(value, type_)
    return True


def _type_of(value: SSAValue) -> TensorType:
    return cast(TensorType, value.type)


################################################################################
# Shifts                                                                       #
################################################################################


@dataclass
class _Shifts:
    graph: GraphOp
    wording: Wording
    dropped: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])

    def drop(self) -> None:
        _erase_unused(self.graph)
        # Last first: of a chain of shifts the end goes, and the rest is then unused.
        for value in reversed(candidates(self.graph)):
            if not reaches_exponent(value):
                continue
            name = self.wording.name(value)
            reason = why_not_free(self.graph, self.wording, value)
            if reason is None:
                self._note(name, value)
                self._put_zero(value)
            elif _is_maximum(value) and not self._drop_uses(value, name):
                self.kept.append(f"{name}: {reason}")
            _erase_unused(self.graph)

    def _drop_uses(self, value: SSAValue, name: str) -> bool:
        """Drop those uses that are free by themselves: the maximum is also a result."""
        uses = [
            (use.operation, use.index)
            for use in value.uses
            if isinstance(use.operation, Operator)
        ]
        free = [
            use
            for use in uses
            if reaches_exponent(use[0].results[0])
            and why_not_free(self.graph, self.wording, value, use) is None
        ]
        for user, position in free:
            self._note(f"{name} in {self.wording.name(user.results[0])}", value)
            self._put_zero(value, (user, position))
        return bool(free)

    def _note(self, name: str, value: SSAValue) -> None:
        dims = ", ".join(map(str, _type_of(value).dims))
        self.dropped.append(f"{name}: shifts by [{dims}]")

    def _put_zero(self, value: SSAValue, place: Use | None = None) -> None:
        zero = Constant(value=0.0, result_type=_computed(value))
        Rewriter.insert_op(zero, InsertPoint.after(cast(Operator, value.owner)))
        if place is None:
            value.replace_all_uses_with(zero.out)
        else:
            user, position = place
            user.operands[position] = zero.out
        _simplify_users(zero.out)


def _is_maximum(value: SSAValue) -> bool:
    return cast(Operator, value.owner).REDUCTION == "max"


def _computed(value: SSAValue) -> TensorType:
    return _type_of(value).with_element(f32)


def _erase_unused(graph: GraphOp) -> None:
    for op in reversed(list(graph.operators)):
        if not any(op.results[0].uses):
            Rewriter.erase_op(op)


################################################################################
# What a number makes superfluous                                              #
################################################################################


def _simplify_users(number: SSAValue) -> None:
    """
    Remove operators that do nothing with a 0 or 1, evaluate those that have nothing but
    numbers, and go on with their results.
    """
    for use in list(number.uses):
        user = use.operation
        if not isinstance(user, Operator):
            continue
        numbers = [_number(operand) for operand in user.operands]
        if not user.ELEMENTWISE and not user.IS_VIEW:
            continue
        others = [i for i, value in enumerate(numbers) if value is None]
        results = {_evaluated(user, numbers, probe) for probe in _PROBES}
        if len(others) == 1 and _is_identity(user, numbers):
            _put(user.operands[others[0]], user.results[0])
        elif len(results) == 1:
            (value,) = results
            constant = Constant(value=value, result_type=user.result_type)
            Rewriter.insert_op(constant, InsertPoint.after(user))
            user.results[0].replace_all_uses_with(constant.out)
            _simplify_users(constant.out)


def _number(value: SSAValue) -> float | None:
    owner = value.owner
    number = owner.number(owner.params) if isinstance(owner, Operator) else None
    return float(number) if isinstance(number, int | float) else None


def _is_identity(op: Operator, numbers: list[float | None]) -> bool:
    """Whether the one operand that is not a number comes out as it is."""
    if not all(number in (None, 0.0, 1.0) for number in numbers):
        return False
    return all(_evaluated(op, numbers, probe) == probe for probe in _PROBES)


def _evaluated(op: Operator, numbers: list[float | None], otherwise: float) -> float:
    import numpy as np

    if op.IS_VIEW:
        return numbers[0] or 0.0
    arrays = [np.array(otherwise if x is None else x) for x in numbers]
    with np.errstate(all="ignore"):
        return float(op.numpy(np, arrays, op.params, ()))
