"""What a command is doing, on a terminal, while it takes long."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress() -> Generator[Callable[[str], object]]:
    """
    A function that shows the step it is given until the next one comes. Where standard
    error is no terminal it does nothing.
    """
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
