"""Numbers in graphs: values that follow from constants and bound sizes alone."""

from __future__ import annotations

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
    op = value.owner
    if not isinstance(op, Operator):
        return None
    args: list[float] = []
    for operand in op.operands if op.ELEMENTWISE else ():
        if (arg := number_everywhere(operand, facts)) is None:
            return None
        args.append(arg)
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
