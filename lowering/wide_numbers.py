"""
Execution of `algebra.graph` with numbers of any size: what a graph without a shift of
its exponents means where float64 overflows.

Attention as the paper writes it divides sums of `exp(s)`, and for s = 3e4 these are
beyond every float. Here such a number is its sign and its logarithm, from the first
exponential until it is small enough again, so that every graph has a reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.lowering.numpy_algebra import (
    apply_operator,
    bound_sizes,
    evaluate_dims,
    evaluate_params,
    prepare_input,
)

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Wide:
    """`sign * exp(log)`, element by element; 0 has the logarithm -inf."""

    sign: Array
    log: Array


Value: TypeAlias = Array | Wide


def wide(value: Value) -> Wide:
    if isinstance(value, Wide):
        return value
    array = value.astype(np.float64)
    return Wide(np.sign(array), np.log(np.abs(array)))


def real(value: Value) -> Array:
    """As a float64, which is infinite if it has to be."""
    return value.sign * np.exp(value.log) if isinstance(value, Wide) else value


class WideNumbers:
    """The domain of wide numbers (`semantics.Domain`); arrays are float64."""

    def number(self, value: Any) -> Value:
        return np.array(float(value))

    def add(self, a: Value, b: Value) -> Value:
        if not isinstance(a, Wide) and not isinstance(b, Wide):
            return a + b
        x, y = wide(a), wide(b)
        signs, logs = np.broadcast_arrays(x.sign, y.sign), _broadcast(x.log, y.log)
        return _summed(Wide(np.stack(signs), np.stack(logs)), 0, keep=False)

    def sub(self, a: Value, b: Value) -> Value:
        return self.add(a, self.neg(b))

    def mul(self, a: Value, b: Value) -> Value:
        if not isinstance(a, Wide) and not isinstance(b, Wide):
            return a * b
        x, y = wide(a), wide(b)
        return Wide(x.sign * y.sign, x.log + y.log)

    def div(self, a: Value, b: Value) -> Value:
        if not isinstance(a, Wide) and not isinstance(b, Wide):
            return a / b
        x, y = wide(a), wide(b)
        return Wide(x.sign * y.sign, x.log - y.log)

    def neg(self, a: Value) -> Value:
        return Wide(-a.sign, a.log) if isinstance(a, Wide) else -a

    def square(self, a: Value) -> Value:
        return self.mul(a, a)

    def exp(self, a: Value) -> Value:
        exponent = real(a)
        return Wide(np.ones_like(exponent), exponent)

    def log(self, a: Value) -> Value:
        return np.where(a.sign < 0, np.nan, a.log) if isinstance(a, Wide) else np.log(a)

    def sqrt(self, a: Value) -> Value:
        return Wide(a.sign, a.log / 2) if isinstance(a, Wide) else np.sqrt(a)

    def maximum(self, a: Value, b: Value) -> Value:
        return np.maximum(real(a), real(b))

    def opaque(self, name: str, *args: Value) -> Value:
        raise NotImplementedError(name)

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        holds = real(mask)
        if not isinstance(a, Wide) and not isinstance(b, Wide):
            return np.where(holds, a, b)
        x, y = wide(a), wide(b)
        return Wide(np.where(holds, x.sign, y.sign), np.where(holds, x.log, y.log))

    def contract(self, a: Value, b: Value, dim: Any) -> Value:
        if not isinstance(a, Wide) and not isinstance(b, Wide):
            return np.matmul(a, b)
        x, y = wide(a), wide(b)
        product = Wide(
            x.sign[..., :, :, None] * y.sign[..., None, :, :],
            x.log[..., :, :, None] + y.log[..., None, :, :],
        )
        return _summed(product, -2, keep=False)

    def sum(self, a: Value, axis: int, dim: Any) -> Value:
        if isinstance(a, Wide):
            return _summed(a, axis, keep=True)
        return a.sum(axis=axis, keepdims=True)

    def max(self, a: Value, axis: int, dim: Any) -> Value:
        return real(a).max(axis=axis, keepdims=True)

    def transpose(self, a: Value, permutation: Sequence[int]) -> Value:
        if isinstance(a, Wide):
            return Wide(a.sign.transpose(permutation), a.log.transpose(permutation))
        return a.transpose(permutation)

    def reshape(self, a: Value, shape: tuple[Any, ...]) -> Value:
        if isinstance(a, Wide):
            return Wide(a.sign.reshape(shape), a.log.reshape(shape))
        return a.reshape(shape)


def _broadcast(a: Array, b: Array) -> tuple[Array, Array]:
    first, second = np.broadcast_arrays(a, b)
    return first, second


def _summed(terms: Wide, axis: int, *, keep: bool) -> Wide:
    largest = terms.log.max(axis=axis, keepdims=True, initial=-np.inf)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    scaled = (terms.sign * np.exp(terms.log - finite)).sum(axis=axis, keepdims=True)
    log = np.log(np.abs(scaled)) + finite
    total = Wide(np.sign(scaled), log)
    if keep:
        return total
    return Wide(total.sign.squeeze(axis), total.log.squeeze(axis))


def execute_graph_widely(
    graph: GraphOp, inputs: Sequence[Array], sizes: Mapping[str, int] | None = None
) -> list[Array]:
    """
    The graph's results for these inputs, in float64 (see `execute_graph`), although
    values on the way may be beyond it. Elements that have no value are NaN.
    """
    sizes = bound_sizes(graph, sizes)
    values: dict[SSAValue, Value] = {}
    for argument, type_, array in zip(
        graph.inputs, graph.input_types, inputs, strict=True
    ):
        name = argument.name_hint or "input"
        values[argument] = prepare_input(name, array, type_, sizes, "float64")
    with np.errstate(all="ignore"):
        for op in graph.operators:
            operands = [values[operand] for operand in op.operands]
            values[op.results[0]] = _applied(op, operands, sizes)
        return [real(values[value]) for value in graph.return_op.values]


def _applied(op: Operator, operands: list[Value], sizes: Mapping[str, int]) -> Value:
    params = evaluate_params(op, sizes)
    shapes = [evaluate_dims(type_.dims, sizes) for type_ in op.operand_types]
    if op.operands:
        try:
            return op.interpret(WideNumbers(), operands, shapes, params)
        except NotImplementedError:
            pass
    return apply_operator(op, list(map(real, operands)), sizes, "float64")
