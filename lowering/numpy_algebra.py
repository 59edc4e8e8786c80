"""
Execution of `algebra.graph` in NumPy: what a graph means.

In "float64" every float is a float64 and casts between floats change nothing: the exact
meaning, against which kernels are checked. In "rounded" inputs and casts are rounded to
their types and everything else is computed in float32 (DESIGN section 5, numbers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from cleave.dialects.algebra.dtypes import numpy_dtype
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.dims import Dim, SymbolicDim, evaluate
from cleave.dialects.tensor import TensorType
from cleave.dialects.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Precision: TypeAlias = Literal["float64", "rounded"]


class ExecutionError(Exception):
    """What was executed has no meaning for these inputs; the message says why."""


def evaluate_dims(dims: Sequence[Dim], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Dims as integers; raises ExecutionError naming a symbol without a size."""
    try:
        return tuple(evaluate(dim, sizes) for dim in dims)
    except KeyError as error:
        raise ExecutionError(f"symbol {error} has no size") from error


def evaluate_params(op: Operator, sizes: Mapping[str, int]) -> dict[str, Any]:
    """An operator's parameters with their dims evaluated."""
    params = op.params
    for name, value in params.items():
        if isinstance(value, SymbolicDim):
            (params[name],) = evaluate_dims([value], sizes)
        elif isinstance(value, tuple):
            params[name] = evaluate_dims(cast(tuple[Dim, ...], value), sizes)
    return params


def as_computed(array: Array, precision: Precision) -> Array:
    """A float array in the type that arithmetic is done in; others unchanged."""
    if array.dtype.kind in "biu":
        return array
    return array.astype(np.float64 if precision == "float64" else np.float32)


def apply_operator(
    op: Operator,
    operands: Sequence[Array],
    sizes: Mapping[str, int],
    precision: Precision,
) -> Array:
    """One operator on arrays; float results are float64, float32, or as cast."""
    is_exact = precision == "float64" and is_float(op.result_type.element_type)
    if op.ONLY_ROUNDS and is_exact:
        return operands[0].astype(np.float64, copy=False)
    computed = [as_computed(operand, precision) for operand in operands]
    shape = evaluate_dims(op.result_type.dims, sizes)
    result = np.asarray(op.numpy(np, computed, evaluate_params(op, sizes), shape))
    if result.shape != shape:
        raise ExecutionError(f"'{op.name}' op: gives {result.shape} instead of {shape}")
    return _in_element_type(result, op.result_type.element_type, precision)


def _in_element_type(array: Array, element: Attribute, precision: Precision) -> Array:
    if is_float(element) and precision == "float64":
        return array.astype(np.float64, copy=False)
    return array.astype(numpy_dtype(element), copy=False)


def prepare_input(
    name: str,
    array: Array,
    type_: TensorType,
    sizes: Mapping[str, int],
    precision: Precision,
) -> Array:
    """An input rounded to its type; raises ExecutionError if its shape is another."""
    shape = evaluate_dims(type_.dims, sizes)
    if array.shape != shape:
        raise ExecutionError(f"input {name} has shape {array.shape}, expected {shape}")
    rounded = array.astype(numpy_dtype(type_.element_type))
    if is_float(type_.element_type) and precision == "float64":
        # The reference sees the same numbers as the kernel: rounded once, at the door.
        return rounded.astype(np.float64)
    return rounded


def bound_sizes(graph: GraphOp, sizes: Mapping[str, int] | None) -> dict[str, int]:
    """The graph's symbols as integers: those given, otherwise those its facts bind."""
    given = dict(sizes or {})
    facts = graph.facts
    for name in graph.symbol_names:
        if name not in given and isinstance(value := facts.binding.get(name), int):
            given[name] = value
    return given


def execute_graph(
    graph: GraphOp,
    inputs: Sequence[Array],
    sizes: Mapping[str, int] | None = None,
    precision: Precision = "float64",
) -> list[Array]:
    """
    The graph's results for these inputs.

    Args:
        inputs: one array an input, of its shape under `sizes`; rounded to its type.
        sizes: integers for the graph's symbols; those its facts bind may be left out.
        precision: "float64" for the exact meaning, "rounded" for the real roundings.
    Raises:
        ExecutionError: a shape or a number of inputs that does not fit.
    """
    sizes = bound_sizes(graph, sizes)
    if len(inputs) != len(graph.inputs):
        raise ExecutionError(
            f"@{graph.graph_name} takes {counted(len(graph.inputs), 'input')}, "
            f"got {len(inputs)}"
        )
    prepared = [
        prepare_input(
            argument.name_hint or str(position), array, type_, sizes, precision
        )
        for position, (argument, array, type_) in enumerate(
            zip(graph.inputs, inputs, graph.input_types, strict=True)
        )
    ]
    return results_of(graph, prepared, sizes, precision)


def results_of(
    graph: GraphOp,
    inputs: Sequence[Array],
    sizes: Mapping[str, int],
    precision: Precision,
) -> list[Array]:
    """`execute_graph` for inputs that are taken as they are, and all sizes."""
    values: dict[SSAValue, Array] = dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.operators:
        operands = [values[operand] for operand in op.operands]
        values[op.results[0]] = apply_operator(op, operands, sizes, precision)
    return [
        _in_element_type(values[value], type_.element_type, precision)
        for value, type_ in zip(graph.return_op.values, graph.output_types, strict=True)
    ]
