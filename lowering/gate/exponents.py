"""What a graph exponentiates, and which of its inputs are added to that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.tensor import TensorType
from cleave.lowering.gate.executors import Array, Executor, Sizes


def exponents_graph(graph: GraphOp) -> GraphOp | None:
    """
    A graph of the same inputs whose results are the exponents of `graph`, or None where
    nothing is exponentiated.
    """
    copy = graph.clone()
    exponents = dict.fromkeys(
        op.operands[0] for op in copy.operators if _exponentiates(op)
    )
    if not exponents:
        return None
    copy.return_op.operands = list(exponents)
    types = [cast(TensorType, exponent.type) for exponent in exponents]
    copy.outputs = ArrayAttr(types)
    return copy


def _exponentiates(op: Operator) -> bool:
    """Whether an operator is an exponential of its operand, to whatever base."""
    calls = _Calls()
    shapes = [type_.dims for type_ in op.operand_types]
    try:
        op.interpret(cast(Any, calls), [None] * len(shapes), shapes, op.params)
    except NotImplementedError:
        return False
    return "exp" in calls.names


class _Calls:
    """A domain of the search that only notes which operations it is asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*values: object) -> None:
            self.names.add(name)

        return call


def added_inputs(
    exponents: GraphOp, executor: Executor, inputs: Sequence[Array], sizes: Sizes
) -> list[int]:
    """
    The positions of float inputs that are added to exponents element by element, such
    as a bias: with ones instead of zeros there, all exponents differ by one number.
    """
    return [
        position
        for position, type_ in enumerate(exponents.input_types)
        if is_float(type_.element_type)
        and type_.rank >= 1
        and _is_added(exponents, position, executor, inputs, sizes)
    ]


def _is_added(
    exponents: GraphOp,
    position: int,
    executor: Executor,
    inputs: Sequence[Array],
    sizes: Sizes,
) -> bool:
    np = executor.np
    with_zeros, with_ones = (
        executor.execute(
            exponents,
            [
                executor.typed(executor.exact(array) * 0.0 + number, type_.element_type)
                if index == position
                else array
                for index, (array, type_) in enumerate(
                    zip(inputs, exponents.input_types, strict=True)
                )
            ],
            sizes,
            "float64",
        )
        for number in (0.0, 1.0)
    )
    for zeros, ones in zip(with_zeros, with_ones, strict=True):
        finite = np.isfinite(zeros) & np.isfinite(ones)
        steps = ones[finite] - zeros[finite]
        if 0 in steps.shape:
            continue
        least, most = float(steps.min()), float(steps.max())
        if least != 0 and most - least <= 1e-9 * abs(most):
            return True
    return False
