"""What a command is doing, on standard error, while it takes long."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text


@contextmanager
def progress(*, quiet: bool = False) -> Generator[Callable[[str], object]]:
    """
    A function that is told what is done next, as `phase` or `phase: detail`.

    On a terminal it shows the phases with the seconds that each takes, and the detail
    of the one that runs; otherwise it writes a line for each step.
    """
    if quiet:
        yield lambda step: None
    elif sys.stderr.isatty():
        display = Display()
        with Live(display, console=Console(stderr=True), transient=True):
            yield display.step
    else:
        start = time.monotonic()

        def line(step: str) -> None:
            spent = time.monotonic() - start
            print(f"{spent:6.1f} s  {step}", file=sys.stderr, flush=True)

        yield line


class Display:
    """The phases of a command, as rich draws them again and again."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots")
        self._spent: dict[str, float] = {}
        """Seconds of the phases up to now, without the run of the one that runs."""
        self._phase = self._detail = ""
        self._since = time.monotonic()

    def step(self, text: str) -> None:
        """Go on to a phase, or to another detail of the one that runs."""
        phase, _, self._detail = text.partition(": ")
        if phase != self._phase:
            now = time.monotonic()
            if self._phase:
                self._spent[self._phase] += now - self._since
            self._spent.setdefault(phase, 0.0)
            self._phase, self._since = phase, now

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        running = time.monotonic() - self._since
        for phase, spent in self._spent.items():
            if phase != self._phase:
                yield Text(f"  {spent:6.1f} s  {phase}")
        if self._phase:
            line = f"{self._spent[self._phase] + running:6.1f} s  {self._phase}"
            self._spinner.update(text=Text(f"{line}  {self._detail}", style="bold"))
            yield self._spinner
