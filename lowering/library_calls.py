"""Calls of vendor libraries in plans: what a compiled graph is measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cleave.lowering.plan import LibraryCall

if TYPE_CHECKING:
    import torch


def library_call(call: LibraryCall) -> Callable[..., object]:
    """
    The function that does a call on its tensors, matrices or stacks of as many: by
    PyTorch, so by cuBLAS on a GPU, accumulated in f32 and rounded once.
    """

    def matmul(lhs: torch.Tensor, rhs: torch.Tensor, out: torch.Tensor) -> None:
        if "lhs" in call.transposed:
            lhs = lhs.mT
        if "rhs" in call.transposed:
            rhs = rhs.mT
        multiply = torch_function("bmm" if out.dim() == 3 else "mm")
        if out.dtype == lhs.dtype:
            multiply(lhs, rhs, out=out)
        elif out.is_cuda:
            multiply(lhs, rhs, out.dtype, out=out)
        else:
            # Only CUDA has products of a wider type than their operands.
            out.copy_(multiply(lhs.to(out.dtype), rhs.to(out.dtype)))

    import torch

    def torch_function(name: str) -> Callable[..., torch.Tensor]:
        return getattr(torch, name)

    return matmul
