"""
What Cleave competes with: vendor libraries, PyTorch and torch.compile.

A peer gets a row's arguments, brings them into the layout it likes (untimed) and gives
a call of its own. One that is not installed, cannot run the row or computes something
else is left out with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.attention_peers import attention_peers
from bench.peer import Operands, Peer
from bench.projection_peers import PROJECTIONS
from bench.shapes import Row

if TYPE_CHECKING:
    import torch

TOLERANCE = 2e-2
"""Relative error up to which a peer counts as computing the row; bf16 keeps 1e-2."""


@dataclass(frozen=True, slots=True)
class ReadyPeer:
    """A peer that computes a row, and its relative error there."""

    name: str
    call: Callable[[], torch.Tensor]
    error: float


def peers_of(row: Row) -> list[Peer]:
    """All peers of a row, whether or not they run here."""
    return [*PROJECTIONS.get(row.subgraph, ()), *attention_peers(row)]


def ready_peers(
    row: Row, operands: Operands, expected: torch.Tensor
) -> tuple[list[ReadyPeer], dict[str, str]]:
    """
    The peers that compute `expected` (float64) from the operands, each called once, and
    why each other one is left out.
    """
    import torch

    # A function that was compiled for too many rows is run by operator, silently.
    torch.compiler.reset()
    ready: list[ReadyPeer] = []
    missing: dict[str, str] = {}
    for peer in peers_of(row):
        name, own = peer.name, operands
        if peer.dtype is not None and peer.dtype != row.dtype:
            name = f"{peer.name} ({peer.dtype})"
            own = _converted(operands, peer.dtype)
        try:
            prepared = peer.prepare(row, own)
            result = prepared.as_result(prepared.call()).double()
            squares = (result - expected).square().sum() / expected.square().sum()
            error = float(squares) ** 0.5
        # Libraries refuse a row with every kind of error.
        except Exception as problem:
            lines = str(problem).strip().splitlines() or [type(problem).__name__]
            missing[name] = lines[0]
            continue
        if error <= TOLERANCE:
            ready.append(ReadyPeer(name, prepared.call, error))
        else:
            missing[name] = f"relative error {error:.3g}"
    return ready, missing


def _converted(operands: Operands, dtype: str) -> list[torch.Tensor]:
    import torch

    return [tensor.to(getattr(torch, dtype)) for tensor in operands]
