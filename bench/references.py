"""The subgraphs in float64, a head or a batch at a time where the scores are large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bench.shapes import Row

if TYPE_CHECKING:
    import torch

EPSILON = 1e-6
"""Added to the mean square in RMSNorm."""


def reference(row: Row) -> Callable[..., torch.Tensor]:
    """The function of a row's float64 arguments that gives its float64 result."""
    return REFERENCES[row.subgraph]


def matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def matmul_matmul(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Without the M x L scores: in float64 the order does not matter."""
    return q @ (k.mT @ v)


def matmul_rowsum(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.sum(1, keepdim=True)


def swiglu(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.functional.silu(x @ w1) * (x @ w2)


def rmsnorm_matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * (x.square().mean(1, keepdim=True) + EPSILON).rsqrt() @ w


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q (H, M, D), k (Hk, D, L), v (Hk, L, E): the scores are not scaled."""
    import torch

    group = q.shape[0] // k.shape[0]
    heads = [
        torch.softmax(q[h] @ k[h // group], dim=1) @ v[h // group]
        for h in range(q.shape[0])
    ]
    return torch.stack(heads)


def natural_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """As `attention`, with k (Hk, L, D)."""
    return attention(q, k.mT, v)


def softmax_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """With k (Hk, L, D), and scores divided by the root of D."""
    return attention(q * q.shape[-1] ** -0.5, k.mT, v)


def mla_decode(
    q: torch.Tensor, kv: torch.Tensor, q_pe: torch.Tensor, k_pe: torch.Tensor
) -> torch.Tensor:
    """q (B, H, C), kv (B, L, C), q_pe (B, H, R), k_pe (B, L, R)."""
    import torch

    batches = [
        torch.softmax(q[b] @ kv[b].T + q_pe[b] @ k_pe[b].T, dim=1) @ kv[b]
        for b in range(q.shape[0])
    ]
    return torch.stack(batches)


REFERENCES: Mapping[str, Callable[..., torch.Tensor]] = {
    "matmul": matmul,
    "matmul_matmul": matmul_matmul,
    "matmul_rowsum": matmul_rowsum,
    "swiglu": swiglu,
    "rmsnorm_matmul": rmsnorm_matmul,
    "mha": attention,
    "gqa": attention,
    "mqa": attention,
    "softmax_attention": softmax_attention,
    "mla_prefill": natural_attention,
    "mla_decode": mla_decode,
}
