"""One thing that Cleave competes with: how it is set up and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bench.shapes import Row

if TYPE_CHECKING:
    import torch

Operands: TypeAlias = "Sequence[torch.Tensor]"
Function: TypeAlias = "Callable[..., torch.Tensor]"


def unchanged(tensor: torch.Tensor) -> torch.Tensor:
    """For a peer whose result has the row's layout."""
    return tensor


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that is ready to be timed, and how its result becomes the row's."""

    call: Callable[[], torch.Tensor]
    as_result: Callable[[torch.Tensor], torch.Tensor] = unchanged


@dataclass(frozen=True, slots=True)
class Peer:
    """`dtype` is the only one that the peer runs in; None if it takes any."""

    name: str
    prepare: Callable[[Row, Operands], Prepared]
    dtype: str | None = None


def eager(name: str, function: Function) -> Peer:
    """A function of the row's arguments, run by PyTorch operator by operator."""
    return Peer(name, lambda _, operands: Prepared(lambda: function(*operands)))


def inductor(name: str, function: Function) -> Peer:
    """The same through torch.compile, for these shapes alone."""

    def prepare(_: Row, operands: Operands) -> Prepared:
        import torch

        compiled: Function = torch.compile(  # pyright: ignore[reportUnknownMemberType]
            function, dynamic=False
        )
        return Prepared(lambda: compiled(*operands))

    return Peer(f"inductor: {name}", prepare)


def both(name: str, function: Function) -> tuple[Peer, Peer]:
    """A function in eager mode and through torch.compile."""
    return eager(name, function), inductor(name, function)
