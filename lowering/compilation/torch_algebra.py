"""
Execution of `algebra.graph` in PyTorch, on the device of its inputs.

The meaning is that of `cleave.lowering.numpy_algebra`, from the same definitions: the
operators are handed PyTorch under NumPy's names. A value is forgotten after its last
use, since the scores of attention take gigabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.lowering.numpy_algebra import Precision, evaluate_dims, evaluate_params


def execute_graph_in_torch(
    graph: GraphOp,
    inputs: Sequence[torch.Tensor],
    sizes: Mapping[str, int],
    precision: Precision = "float64",
) -> list[torch.Tensor]:
    """
    The results of a graph, as `execute_graph` defines them.

    `inputs` are of the graph's types and on one device, `sizes` has all its symbols.
    """
    numpy = _TorchAsNumPy(inputs[0].device if inputs else torch.device("cpu"))
    values: dict[SSAValue, torch.Tensor] = dict(zip(graph.inputs, inputs, strict=True))
    uses = Counter(operand for op in graph.operators for operand in op.operands)
    uses.update(graph.return_op.values)
    for op in graph.operators:
        values[op.results[0]] = _applied(op, values, sizes, precision, numpy)
        for operand in op.operands:
            uses[operand] -= 1
            if not uses[operand]:
                del values[operand]
    return [
        _in_element_type(values[value], type_.element_type, precision)
        for value, type_ in zip(graph.return_op.values, graph.output_types, strict=True)
    ]


def _applied(
    op: Operator,
    values: Mapping[SSAValue, torch.Tensor],
    sizes: Mapping[str, int],
    precision: Precision,
    numpy: _TorchAsNumPy,
) -> torch.Tensor:
    element = op.result_type.element_type
    if op.ONLY_ROUNDS:
        return _in_element_type(values[op.operands[0]], element, precision)
    arrays = [
        _as_computed(values[operand], precision).as_subclass(_Array)
        for operand in op.operands
    ]
    shape = evaluate_dims(op.result_type.dims, sizes)
    result: torch.Tensor = op.numpy(numpy, arrays, evaluate_params(op, sizes), shape)
    return _in_element_type(result.as_subclass(torch.Tensor), element, precision)


def _as_computed(tensor: torch.Tensor, precision: Precision) -> torch.Tensor:
    """A float tensor in the type that arithmetic is done in; others unchanged."""
    if not tensor.is_floating_point():
        return tensor
    return tensor.to(torch.float64 if precision == "float64" else torch.float32)


def _in_element_type(
    tensor: torch.Tensor, element: Attribute, precision: Precision
) -> torch.Tensor:
    if is_float(element) and precision == "float64":
        return tensor.to(torch.float64)
    return tensor.to(getattr(torch, dtype_name(element)))


class _Array(torch.Tensor):
    """A tensor with those methods that NumPy's arrays have under another meaning."""

    def max(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, axis: int, keepdims: bool, initial: float | None = None
    ) -> torch.Tensor:
        largest = self.amax(dim=axis, keepdim=keepdims)
        return largest if initial is None else largest.clamp(min=initial)

    def transpose(self, axes: Sequence[int]) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.permute(*axes)

    def astype(self, dtype: torch.dtype) -> torch.Tensor:
        return self.to(dtype)


class _TorchAsNumPy:
    """PyTorch's functions, where operators look for NumPy's."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def int32(self, value: int) -> int:
        return value

    def arange(self, size: int, dtype: object = None) -> torch.Tensor:
        """Positions, which all are int32 here."""
        return torch.arange(size, dtype=torch.int32, device=self._device)

    def full(self, shape: Sequence[int], value: float) -> torch.Tensor:
        return torch.full(tuple(shape), value, dtype=torch.float64, device=self._device)

    def maximum(self, a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
        return torch.maximum(a, torch.as_tensor(b, dtype=a.dtype, device=self._device))

    def minimum(self, a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
        return torch.minimum(a, torch.as_tensor(b, dtype=a.dtype, device=self._device))

    def frompyfunc(
        self, function: Callable[..., object], inputs: int, results: int
    ) -> Callable[..., torch.Tensor]:
        """A function of Python's `math` as PyTorch's function of that name."""
        return getattr(torch, function.__name__)
