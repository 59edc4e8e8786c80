"""What a kernel form answers: whether it fits, its choices, its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import IntegerAttr, StringAttr

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.lowering.hardware import Hardware
from cleave.lowering.tilelang.kernel import EmissionContext, KernelText

Setting: TypeAlias = int | str
Settings: TypeAlias = Mapping[str, Setting]
"""
Values of a kernel's attributes: `threads` (those that compute), `stages` of the
software pipeline, `swizzle` (how many rows of output tiles are walked together, for
reuse in L2; 0 for none), `specialization`, and what else a form has.
"""


class KernelForm(ABC):
    """One way to write a planned kernel; stateless."""

    name: ClassVar[str]

    @abstractmethod
    def fits(self, kernel: KernelOp, hardware: Hardware) -> str | None:
        """
        Why the kernel cannot have this form, or None if it can.

        Rules about sizes are applied to those that have values.
        """

    def place(self, kernel: KernelOp) -> None:  # noqa: B027 (most forms want nothing)
        """Change where tiles live, once memory is planned, to what the form wants."""

    @abstractmethod
    def options(self, kernel: KernelOp) -> Mapping[str, Sequence[Setting]]:
        """The settings to choose from, each with its values."""

    @abstractmethod
    def emit(self, kernel: KernelOp, context: EmissionContext) -> KernelText:
        """The text of a kernel that this form fits. Raises EmissionError."""

    def settings_of(self, kernel: KernelOp) -> dict[str, Setting]:
        """The settings that a kernel has, by its attributes."""
        settings: dict[str, Setting] = {}
        for name in self.options(kernel):
            attribute = kernel.properties.get(name, kernel.attributes.get(name))
            if isinstance(attribute, IntegerAttr):
                settings[name] = attribute.value.data
            elif isinstance(attribute, StringAttr):
                settings[name] = attribute.data
        return settings
