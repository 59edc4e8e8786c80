"""Numbers in graphs: values that follow from constants and bound sizes alone."""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import SSAValue

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import SymbolicDim
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import TensorType


def constant_value(value: SSAValue, facts: Facts) -> float | None:
    """
    The one number that a tensor of a single element holds, if it is computed from
    constants and dims that the facts bind; None otherwise.
    """
    op = value.owner
    if not isinstance(op, Operator) or not (op.ELEMENTWISE or isinstance(op, Constant)):
        return None
    dims = cast(TensorType, value.type).dims
    if any(facts.resolve(dim) != 1 for dim in dims):
        return None
    args = [constant_value(operand, facts) for operand in op.operands]
    if None in args:
        return None
    params: dict[str, Any] = op.params
    for name, param in params.items():
        if isinstance(param, SymbolicDim):
            params[name] = facts.resolve(param)
            if not isinstance(params[name], int):
                return None
    import numpy as np

    return float(op.numpy(np, [np.full((), arg) for arg in args], params, ()))
