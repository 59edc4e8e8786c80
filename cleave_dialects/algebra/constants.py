"""Numbers in graphs: values that follow from constants and bound sizes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import SymbolicDim
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import TensorType


def constant_value(value: SSAValue, facts: Facts) -> float | None:
    """
    The one number that a tensor of a single element holds, if it is computed from
    constants and dims that the facts bind; None otherwise.
    """
    dims = cast(TensorType, value.type).dims
    if any(facts.resolve(dim) != 1 for dim in dims):
        return None
    return number_everywhere(value, facts)


def number_everywhere(value: SSAValue, facts: Facts) -> float | None:
    """The same for a tensor of any dims: the one number that all its elements are."""
    numbers: dict[SSAValue, float] = {}
    # Graphs may be deep, and every product asks this when it is verified.
    stack = [value]
    while stack:
        op = stack[-1].owner
        if not isinstance(op, Operator):
            return None
        operands = op.operands if op.ELEMENTWISE else ()
        if missing := [each for each in operands if each not in numbers]:
            stack += dict.fromkeys(missing)
            continue
        number = _number(op, [numbers[each] for each in operands], facts)
        if number is None:
            return None
        numbers[stack.pop()] = number
    return numbers[value]


def _number(op: Operator, args: Sequence[float], facts: Facts) -> float | None:
    """What an operator makes of numbers; None if it is no number."""
    params: dict[str, Any] = op.params
    for name, param in params.items():
        if isinstance(param, SymbolicDim):
            params[name] = facts.resolve(param)
            if not isinstance(params[name], int):
                return None
    if (number := op.number(params)) is not None:
        return float(number)
    if not op.ELEMENTWISE:
        return None
    import numpy as np

    with np.errstate(all="ignore"):
        return float(op.numpy(np, [np.full((), arg) for arg in args], params, ()))
