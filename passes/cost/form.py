"""
Kernel forms: the ways in which one planned kernel can be written.

A form says which kernels it fits, which launches it offers for them, what those take of
the hardware in every tile configuration, and how long they run. Ranking knows forms by
this interface only; `itgraph.kernel` names the form that was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import KernelForms
from cleave.passes.cost.evaluation import Array, Evaluation

Specialization: TypeAlias = Literal["single-loop", "role-based", "none"]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Launch:
    """What is chosen for a kernel besides its tile sizes."""

    threads: int
    """That compute; a form may add some that only load."""
    stages: int
    specialization: Specialization

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.stages} stages, {self.specialization}"


@dataclass(frozen=True)
class Limit:
    """
    One resource in every configuration and launch, and how much there is of it.

    `text` says both, with `{used}` and `{limit}` for the numbers.
    """

    used: Array
    limit: Array
    text: str

    @property
    def exceeded(self) -> Mask:
        return self.used > self.limit


@dataclass(frozen=True)
class Rule:
    """A rule that tiles have to obey, and where they do not."""

    broken: Mask
    text: str

    @property
    def exceeded(self) -> Mask:
        return self.broken


class KernelForm(Protocol):
    """One way to write a kernel. Arrays are `(configurations, launches)`."""

    @property
    def name(self) -> str:
        """As `itgraph.kernel` names it."""
        ...

    def unfit(self, forms: KernelForms) -> str | None:
        """Why the form cannot write a kernel; None if it can."""
        ...

    def launches(self, forms: KernelForms, hardware: Hardware) -> Sequence[Launch]:
        """The launches that are worth trying."""
        ...

    def limits(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Mapping[str, Limit | Rule]:
        """What makes configurations illegal, by the name it is counted under."""
        ...

    def seconds(
        self, at: Evaluation, launches: Sequence[Launch], hardware: Hardware
    ) -> Array:
        """How long the kernel runs, without its launch."""
        ...
