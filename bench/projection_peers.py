"""Peers of matmuls and what is around them: cuBLAS, PyTorch and torch.compile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bench.peer import Operands, Peer, Prepared, both, eager, inductor
from bench.shapes import Row

if TYPE_CHECKING:
    import torch


def matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def matmul_matmul(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT) @ v


def keys_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return q @ (k.mT @ v)


def matmul_rowsum(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).sum(1, keepdim=True)


def rowsum_first(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.sum(1, keepdim=True)


def swiglu(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.functional.silu(x @ w1) * (x @ w2)


def packed_swiglu(x: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    import torch

    gate, up = (x @ packed).chunk(2, dim=1)
    return torch.nn.functional.silu(gate) * up


def rmsnorm_matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.functional.rms_norm(x, (x.shape[1],), eps=1e-6) @ w


def _packed(peer: Peer) -> Peer:
    """SwiGLU as one GEMM, with the weights packed side by side beforehand."""

    def prepare(row: Row, operands: Operands) -> Prepared:
        import torch

        x, w1, w2 = operands
        return peer.prepare(row, (x, torch.cat([w1, w2], dim=1)))

    return Peer(peer.name, prepare)


PROJECTIONS: Mapping[str, Iterable[Peer]] = {
    "matmul": (eager("cuBLAS", matmul), inductor("matmul", matmul)),
    "matmul_matmul": (
        *both("as written", matmul_matmul),
        *both("Q (K^T V)", keys_first),
    ),
    "matmul_rowsum": (
        *both("as written", matmul_rowsum),
        *both("X rowsum(W)", rowsum_first),
    ),
    "swiglu": (
        *both("two GEMMs", swiglu),
        *map(_packed, both("one GEMM on [W1 W2]", packed_swiglu)),
    ),
    "rmsnorm_matmul": both("F.rms_norm + GEMM", rmsnorm_matmul),
}
