"""Attention peers: FlashAttention-3, PyTorch's backends, and attention as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bench.peer import Operands, Peer, Prepared, both
from bench.shapes import Row

if TYPE_CHECKING:
    import torch

TRANSPOSED_KEYS = ("mha", "gqa", "mqa")
NATURAL_KEYS = ("softmax_attention", "mla_prefill")

# The context is split where there are fewer queries; the best count is a peer's time.
DECODE_QUERIES = 256
SPLITS = (1, 2, 4, 8, 16, 32)


def attention_peers(row: Row) -> Iterator[Peer]:
    """The peers of an attention row; none for other rows."""
    if row.subgraph == "mla_decode":
        for splits in SPLITS:
            yield Peer(f"FA3 qv, {splits} splits", _fa3_mla(splits), "bfloat16")
        yield from both("as written", _mla_as_written)
    if row.subgraph not in TRANSPOSED_KEYS + NATURAL_KEYS:
        return
    decode = row.sizes["M"] < DECODE_QUERIES
    for splits in SPLITS if decode else (1,):
        name = f"FA3, {splits} splits" if decode else "FA3"
        yield Peer(name, _fa3(splits), "bfloat16")
    yield Peer("cuDNN", _backend("CUDNN_ATTENTION"))
    yield Peer("FA2", _backend("FLASH_ATTENTION"))
    for peer in both("as written", _as_written):
        yield Peer(peer.name, _on_operands(peer))


def operands_of(
    row: Row, operands: Operands
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    q (H, M, D), k (Hk, L, D) and v (Hk, L, E) of an attention row, contiguous, with the
    scale of the scores multiplied into q: peers take 1.
    """
    q, k, v = operands
    if row.subgraph in TRANSPOSED_KEYS:
        k = k.mT.contiguous()
    if row.subgraph == "softmax_attention":
        q = q * q.shape[-1] ** -0.5
    return q, k, v


def _fa3(splits: int) -> Callable[[Row, Operands], Prepared]:
    def prepare(row: Row, operands: Operands) -> Prepared:
        flash_attn_func = _fa3_function()
        # (1, tokens, heads, dim)
        q, k, v = (
            tensor.transpose(0, 1).contiguous()[None]
            for tensor in operands_of(row, operands)
        )
        return Prepared(
            lambda: flash_attn_func(q, k, v, softmax_scale=1.0, num_splits=splits),
            lambda result: result[0].transpose(0, 1),
        )

    return prepare


def _fa3_mla(splits: int) -> Callable[[Row, Operands], Prepared]:
    """Positions as q and k, content as qv and v; one key head for all queries."""

    def prepare(row: Row, operands: Operands) -> Prepared:
        flash_attn_func = _fa3_function()
        content, kv, position, k_pe = operands
        q, qv = position[:, None], content[:, None]
        k, v = k_pe[:, :, None], kv[:, :, None]
        return Prepared(
            lambda: flash_attn_func(
                q, k, v, qv=qv, softmax_scale=1.0, num_splits=splits
            ),
            lambda result: result[:, 0],
        )

    return prepare


def _fa3_function() -> Callable[..., torch.Tensor]:
    interface: Any = import_module("fa3_fwd_interface")
    return interface.flash_attn_func


def _backend(name: str) -> Callable[[Row, Operands], Prepared]:
    """One of the kernels behind scaled_dot_product_attention, and no other."""

    def prepare(row: Row, operands: Operands) -> Prepared:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        backend: SDPBackend = getattr(SDPBackend, name)
        q, k, v = (tensor[None] for tensor in operands_of(row, operands))
        grouped = q.shape[1] != k.shape[1]

        def call() -> torch.Tensor:
            with sdpa_kernel([backend]):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, scale=1.0, enable_gqa=grouped
                )

        return Prepared(call, lambda result: result[0])

    return prepare


def _on_operands(peer: Peer) -> Callable[[Row, Operands], Prepared]:
    """A peer of q, k and v as `operands_of` gives them, grouped by key head."""

    def prepare(row: Row, operands: Operands) -> Prepared:
        q, k, v = operands_of(row, operands)
        shape = (*q.shape[:2], v.shape[-1])
        grouped = q.view(k.shape[0], -1, *q.shape[1:])
        prepared = peer.prepare(row, (grouped, k[:, None], v[:, None]))
        return Prepared(prepared.call, lambda result: result.reshape(shape))

    return prepare


def _as_written(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.softmax(q @ k.mT, dim=-1) @ v


def _mla_as_written(
    q: torch.Tensor, kv: torch.Tensor, q_pe: torch.Tensor, k_pe: torch.Tensor
) -> torch.Tensor:
    import torch

    return torch.softmax(q @ kv.mT + q_pe @ k_pe.mT, dim=-1) @ kv
