"""
What a kernel form costs: which launches it offers for a kernel, what those take of the
hardware in every tile configuration, and how long they run.

Ranking knows forms by this interface only. A new form is a file here and an entry in
`cleave.passes.cost.forms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cleave.dialects.wording import counted
from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import KernelForms
from cleave.passes.cost.evaluation import Array, Evaluation
from cleave.passes.cost.origin import Origin

Specialization: TypeAlias = Literal["single-loop", "role-based", "none"]
Mask: TypeAlias = NDArray[np.bool_]
Parts: TypeAlias = Sequence[tuple[Origin, Array | Mask]]
"""What limits are about, each with its share in every configuration and launch."""


@dataclass(frozen=True)
class Launch:
    """What is chosen for a kernel besides its tile sizes."""

    threads: int
    """That compute; a form may add some that only load."""
    stages: int
    specialization: Specialization | None = None
    """How TileLang divides warps, in forms that leave this to it."""

    def __str__(self) -> str:
        parts = [f"{self.threads} threads", counted(self.stages, "stage")]
        return ", ".join([*parts, *filter(None, [self.specialization])])


@dataclass(frozen=True)
class Limit:
    """
    One resource in every configuration and launch, and how much there is of it.

    `text` says both, with `{used}` and `{limit}` for the numbers.
    """

    used: Array
    limit: Array
    text: str
    parts: Parts = ()
    """What `used` is the sum of, as far as it is tiles; units do not matter."""

    @property
    def exceeded(self) -> Mask:
        return self.used > self.limit


@dataclass(frozen=True)
class Rule:
    """A rule that tiles have to obey, and where they do not."""

    broken: Mask
    text: str
    parts: Parts = ()
    """What may break it, and where that does."""

    @classmethod
    def of(cls, parts: Parts, text: str) -> Rule:
        """The rule that any of its parts breaks."""
        broken = np.zeros((1, 1), bool)
        for _, own in parts:
            broken = broken | (own > 0)
        return cls(broken, text, parts)

    @property
    def exceeded(self) -> Mask:
        return self.broken


@dataclass(frozen=True)
class Times:
    """How long kernels run, `(configurations, launches)` arrays."""

    seconds: Array
    """Without the launch."""
    panel: Array
    """The width of L2 rasterization that this is for; 0 for none."""
    tiles: Array
    """Of the output."""
    threadblocks: Array
    """That are launched for them."""
    blocks: Array
    """Threadblocks that a multiprocessor runs at a time."""


class FormCost(Protocol):
    """
    What one way to write kernels costs. `cleave.lowering.tilelang.forms` has the form
    of the same name, which says which kernels it fits and writes them.

    Arrays are `(configurations, launches)`, or broadcast to that.
    """

    @property
    def name(self) -> str:
        """As `itgraph.kernel` names the form."""
        ...

    def may_fit(self, forms: KernelForms, hardware: Hardware) -> bool:
        """
        Whether the form may fit a kernel, by its closed forms in another form; whether
        it does, planning its memory for the form shows.
        """
        ...

    def launches(self, forms: KernelForms, hardware: Hardware) -> Sequence[Launch]:
        """The launches that are worth trying."""
        ...

    def limits(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Mapping[str, Limit | Rule]:
        """What makes configurations illegal, by the name it is counted under."""
        ...

    def times(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Times:
        """How long the kernel runs in every configuration."""
        ...
