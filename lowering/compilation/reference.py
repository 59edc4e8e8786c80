"""What a graph's results are: as it is written, and what it means where that is NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.drop_shifts import drop_shifts
from cleave.passes.stabilize_exp import stabilize

Execute = Callable[[GraphOp], Sequence[Any]]
"""The results of a graph on some inputs, as arrays of NumPy or tensors of PyTorch."""


def results_of(np: Any, graph: GraphOp, execute: Execute) -> list[Any]:
    """
    The results of a graph.

    A softmax that is written with its maximum subtracted is NaN in a row without keys,
    `-inf - -inf`; what it means there is 0, and its log-sum-exp -inf. Such elements are
    those of the same graph with references, if they are not NaN there as well. `np` is
    NumPy or PyTorch.
    """
    results = list(execute(graph))
    if not any(bool(np.isnan(result).any()) for result in results):
        return results
    safe = graph.clone()
    try:
        drop_shifts(safe)
        stabilize(safe)
    except PassFailedException:
        return results
    return [
        np.where(np.isnan(result), meant, result)
        for result, meant in zip(results, execute(safe), strict=True)
    ]
