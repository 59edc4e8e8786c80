"""
Attention as PyTorch computes it: in float64, head by head, and in eager low precision.

Both are written from the definition and share nothing with the graphs that kernels are
made of. A row that sees no key gives 0, and -inf for its log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.attention_cases import AttentionKernel

if TYPE_CHECKING:
    import torch


def exact(
    kernel: AttentionKernel, inputs: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Attention and its log-sum-exp in float64.

    `inputs` are q [N, G, M, D], k [N, 1, L, D], v [N, 1, L, E] and, for a bias, [M, L].
    Returns [N, G, M, E] and [N, G, M, 1].
    """
    import torch

    q, k, v, *rest = (tensor.double() for tensor in inputs)
    bias = rest[0] if rest else None
    outputs: list[torch.Tensor] = []
    sums: list[torch.Tensor] = []
    for n in range(q.shape[0]):
        for g in range(q.shape[1]):
            o, lse = _attention(kernel, q[n, g], k[n, 0], v[n, 0], bias)
            outputs.append(o)
            sums.append(lse)
    heads = tuple(q.shape[:2])
    return (
        torch.stack(outputs).reshape(*heads, *outputs[0].shape),
        torch.stack(sums).reshape(*heads, *sums[0].shape),
    )


def eager(
    kernel: AttentionKernel, inputs: Sequence[torch.Tensor], dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, operator by operator in a low precision, all heads at once."""
    q, k, v, *rest = (tensor.to(dtype) for tensor in inputs)
    return _attention(kernel, q, k, v, rest[0] if rest else None)


def _attention(
    kernel: AttentionKernel,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    s = q @ k.mT / kernel.qk_dim**0.5
    s = _masked(kernel, s, bias)
    m = s.amax(-1, keepdim=True)
    # exp(-inf - m) is 0 for whatever finite m.
    m = m.masked_fill(m == -float("inf"), 0.0)
    p = (s - m).exp()
    total = p.sum(-1, keepdim=True)
    normalized = (p / total).masked_fill(total == 0, 0.0)
    return normalized @ v, total.log() + m


def _masked(
    kernel: AttentionKernel, s: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    if bias is not None:
        return s + bias
    if kernel.mask == "softcap":
        return (s / kernel.cap).tanh() * kernel.cap
    seen = sees(kernel, s.shape[-2], s.shape[-1], s.device)
    return s.masked_fill(~seen, -float("inf"))


def sees(
    kernel: AttentionKernel, queries: int, keys: int, device: torch.device
) -> torch.Tensor:
    """
    Which keys each query sees by the kernel's mask, [M, L]; a bias and a softcap hide
    none. The last query and the last key stand side by side.
    """
    import torch

    rows = torch.arange(queries, device=device)[:, None] + keys - queries
    behind = rows - torch.arange(keys, device=device)
    if kernel.mask == "causal":
        return behind >= 0
    if kernel.mask == "window":
        return (behind >= 0) & (behind < kernel.window)
    return torch.ones_like(behind, dtype=torch.bool)
