"""Where a gate runs graphs: NumPy on the host, or PyTorch on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from xdsl.ir import Attribute

from cleave.dialects.algebra.dtypes import dtype_name, numpy_dtype
from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.numpy_algebra import Precision, execute_graph

if TYPE_CHECKING:
    import torch

Array: TypeAlias = Any
"""An array of the executor: a NumPy array, or a tensor on its device."""
Sizes: TypeAlias = Mapping[str, int]


class Executor(Protocol):
    """Draws arrays and executes graphs; `np` has its functions under NumPy's names."""

    np: Any

    def normal(self, shape: Sequence[int], seed: int) -> Array:
        """Normally distributed numbers in float64."""
        ...

    def integers(self, shape: Sequence[int], high: int, seed: int) -> Array:
        """Integers from 0 to `high - 1` in int64."""
        ...

    def positions(self, count: int) -> Array:
        """The integers from 0 to `count - 1`, in order."""
        ...

    def typed(self, array: Array, element: Attribute) -> Array:
        """An array rounded to an element type, as callers have it."""
        ...

    def exact(self, array: Array) -> Array:
        """The same numbers in float64."""
        ...

    def execute(
        self,
        graph: GraphOp,
        inputs: Sequence[Array],
        sizes: Sizes,
        precision: Precision,
    ) -> list[Array]:
        """The results of a graph (see `numpy_algebra.execute_graph`)."""
        ...


class NumPyExecutor:
    """On the host, without warnings of overflows: inputs are made for that."""

    def __init__(self) -> None:
        import numpy

        self.np: Any = numpy

    def normal(self, shape: Sequence[int], seed: int) -> Array:
        return self.np.random.default_rng(seed).standard_normal(tuple(shape))

    def integers(self, shape: Sequence[int], high: int, seed: int) -> Array:
        return self.np.random.default_rng(seed).integers(0, high, tuple(shape))

    def positions(self, count: int) -> Array:
        return self.np.arange(count)

    def typed(self, array: Array, element: Attribute) -> Array:
        with self.np.errstate(all="ignore"):
            return array.astype(numpy_dtype(element))

    def exact(self, array: Array) -> Array:
        return array.astype(self.np.float64)

    def execute(
        self,
        graph: GraphOp,
        inputs: Sequence[Array],
        sizes: Sizes,
        precision: Precision,
    ) -> list[Array]:
        with self.np.errstate(all="ignore"):
            return execute_graph(graph, inputs, sizes, precision)


class TorchExecutor:
    """On a device of PyTorch."""

    def __init__(self, device: torch.device) -> None:
        import torch

        self.np: Any = torch
        self.device = device

    def normal(self, shape: Sequence[int], seed: int) -> Array:
        drawn = self.np.randn(
            tuple(shape), generator=self._generator(seed), device=self.device
        )
        return drawn.double()

    def integers(self, shape: Sequence[int], high: int, seed: int) -> Array:
        return self.np.randint(
            high, tuple(shape), generator=self._generator(seed), device=self.device
        )

    def positions(self, count: int) -> Array:
        return self.np.arange(count, device=self.device)

    def typed(self, array: Array, element: Attribute) -> Array:
        return array.to(getattr(self.np, dtype_name(element)))

    def exact(self, array: Array) -> Array:
        return array.double()

    def execute(
        self,
        graph: GraphOp,
        inputs: Sequence[Array],
        sizes: Sizes,
        precision: Precision,
    ) -> list[Array]:
        from cleave.lowering.compilation.torch_algebra import execute_graph_in_torch

        return execute_graph_in_torch(graph, inputs, sizes, precision)

    def _generator(self, seed: int) -> Any:
        return self.np.Generator(self.device).manual_seed(seed)
