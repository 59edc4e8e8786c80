"""What passes warn of: on standard error, or in a list of whoever runs them."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("_collected", default=None)


def warn(pass_name: str, text: str) -> None:
    """Say what a pass did otherwise than a user might expect."""
    if (collected := _collected.get()) is not None:
        collected.append(f"{pass_name}: {text}")
    else:
        print(f"warning: pass '{pass_name}': {text}", file=sys.stderr)


@contextmanager
def collected_warnings() -> Generator[list[str]]:
    """A list of what passes warn of in this context, in place of standard error."""
    collected: list[str] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
