"""The check of a compiled graph on the GPU of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import is_float
from cleave.dialects.tensor import TensorType
from cleave.lowering.compilation.accuracy import (
    DRAWINGS,
    Drawing,
    NumericCheck,
    allowed_error,
    is_usable,
    relative_error,
)
from cleave.lowering.compilation.reference import results_of
from cleave.lowering.numpy_algebra import evaluate_dims
from cleave.passes.insert_casts import insert_casts

if TYPE_CHECKING:
    import torch

    from cleave.lowering.runtime import CompiledGraph

SEED = 0


class DoesNotFitError(ValueError):
    """A graph whose tensors are too large for the memory of the GPU."""


class DeviceCheck:
    """Inputs for a graph on the current device, and what it computes from them."""

    def __init__(self, graph: GraphOp, sizes: Mapping[str, int]) -> None:
        """Raises DoesNotFitError if the memory is too small for the exact results."""
        import torch

        self.graph = graph
        self.sizes = sizes
        try:
            self._choose_inputs()
        except torch.OutOfMemoryError as error:
            raise DoesNotFitError(
                f"the tensors of @{graph.graph_name} and their reference in float64 do "
                f"not fit into the memory of the GPU: {str(error).splitlines()[0]}"
            ) from error

    def _choose_inputs(self) -> None:
        import torch

        for drawing in DRAWINGS:
            self.drawing = drawing
            generator = torch.Generator("cuda").manual_seed(SEED)
            self.inputs = [
                _draw(type_, self.sizes, drawing, generator)
                for type_ in self.graph.input_types
            ]
            self.exact = results_of(torch, self.graph, self._exact)
            results = results_of(torch, self.graph, self._rounded)
            self.allowed = [
                allowed_error(self.graph, relative_error(torch, result, reference)[0])
                for result, reference in zip(results, self.exact, strict=True)
            ]
            if is_usable(torch, self.exact, results):
                return

    def _exact(self, graph: GraphOp) -> list[torch.Tensor]:
        from cleave.lowering.compilation.torch_algebra import execute_graph_in_torch

        results = execute_graph_in_torch(graph, self.inputs, self.sizes)
        # A mask as numbers: PyTorch subtracts none from another.
        return [result.double() for result in results]

    def _rounded(self, graph: GraphOp) -> list[torch.Tensor]:
        from cleave.lowering.compilation.torch_algebra import execute_graph_in_torch

        rounded = graph.clone()
        insert_casts(rounded)
        results = execute_graph_in_torch(rounded, self.inputs, self.sizes, "rounded")
        return [result.double() for result in results]

    def check(self, compiled: CompiledGraph) -> NumericCheck:
        """Run a compiled graph on these inputs and compare each of its results."""
        from cleave.lowering.check import check_against

        results = check_against(compiled, self.exact, self.inputs)
        reasons = [
            reason
            for result, allowed in zip(results, self.allowed, strict=True)
            for reason in result.reasons(allowed)
        ]
        errors = [result.error for result in results]
        return NumericCheck(
            "device", dict(self.sizes), self.drawing, errors, self.allowed, reasons
        )


def _draw(
    type_: TensorType,
    sizes: Mapping[str, int],
    drawing: Drawing,
    generator: torch.Generator,
) -> torch.Tensor:
    """A random tensor of a type: floats as drawn, masks, or integers from 0 to 7."""
    import torch

    shape = evaluate_dims(type_.dims, sizes)
    dtype: torch.dtype = getattr(torch, dtype_name(type_.element_type))
    if not is_float(type_.element_type):
        high = 2 if dtype == torch.bool else 8
        drawn = torch.randint(high, shape, generator=generator, device="cuda")
        return drawn.to(dtype)
    drawn = torch.randn(shape, generator=generator, device="cuda") * drawing.scale
    return (drawn.abs() if drawing.positive else drawn).to(dtype)
