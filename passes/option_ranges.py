"""What numbers an option of a pass takes; the tools refuse others by its name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Range:
    """Stands in the type of an option, as in `limit: Annotated[int, Range(0)] = 8`."""

    least: float
    most: float = math.inf
    multiple: int | None = None

    def __contains__(self, number: float) -> bool:
        fits = self.multiple is None or number % self.multiple == 0
        return self.least <= number <= self.most and fits

    def __str__(self) -> str:
        if self.most == math.inf:
            text = f"of at least {self.least}"
        else:
            text = f"from {self.least} to {self.most}"
        if self.multiple is not None:
            text += f" that {self.multiple} divides"
        return text


MOST = 2**32 - 1
"""Of what is recorded in the IR, as i64."""
SEED = Range(0, MOST)
"""Of random numbers."""
THREADS = Range(32, 1024, multiple=32)
"""Of a threadblock, in whole warps; no GPU has more."""


def ranges(cls: type) -> dict[str, Range]:
    """The ranges of a pass's options, by name."""
    return {
        name: range_
        for name, type_ in get_type_hints(cls, include_extras=True).items()
        if get_origin(type_) is Annotated
        for range_ in get_args(type_)[1:]
        if isinstance(range_, Range)
    }
