"""
The degree of a value, and the obstacles that values may be to each other.

See `degrees` for what a degree means.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cleave.dialects.algebra.contraction import LOWEST
from cleave.passes.exponents.factors import Factor, Placed
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.superoptimize.semantics import Shape


@dataclass(frozen=True, slots=True)
class Degree:
    """What is known of a value; without scale and offset it does not change."""

    shape: Shape
    scale: Form = ZERO
    offset: Form = ZERO
    factor: Factor | None = None
    """The value as a factor, if it is one number or an unchanging tensor."""
    number: float | None = None
    may_vanish: bool = False
    """
    May be -inf for all indices of some dims, or, where it is scaled, 0: masked rows.
    """
    is_mask: bool = False
    """Only 0 and 1."""
    masks: frozenset[Placed] = frozenset()
    """Where one of these masks does not hold, the value is 0."""
    operand: int | None = None
    """The operand of the operator at hand that this is, up to sign, views and roots."""
    is_unchanged: bool = False
    """Whether it is that operand as it is: a selection by one of its masks."""

    @property
    def as_mask(self) -> frozenset[Placed]:
        """The mask that this is."""
        if not self.is_mask or self.factor is None:
            return frozenset()
        return frozenset(base for base, _ in self.factor.powers.items)

    @property
    def moves(self) -> bool:
        return bool(self.scale or self.offset)

    @property
    def has_any_scale(self) -> bool:
        """0 stays 0 however much it is scaled."""
        return self.number == 0

    @property
    def has_any_offset(self) -> bool:
        """What is this low stays as low however much it is shifted."""
        return self.number is not None and self.number <= LOWEST


class Sort(Enum):
    SCALE = "scaled"
    OFFSET = "shifted"

    def of(self, degree: Degree) -> Form:
        return degree.scale if self is Sort.SCALE else degree.offset


class Obstacle(Exception):
    """A rule that degrees violate."""

    sort: Sort

    @property
    def values(self) -> tuple[Degree, ...]:
        raise NotImplementedError


@dataclass(eq=False)
class Unlike(Obstacle):
    """Values are combined that have to have equal degrees of a sort."""

    sort: Sort
    left: Degree
    right: Degree

    @property
    def values(self) -> tuple[Degree, ...]:
        return (self.left, self.right)


@dataclass(eq=False)
class Moves(Obstacle):
    """A function has no law for an operand that has a degree of this sort."""

    sort: Sort
    value: Degree

    @property
    def values(self) -> tuple[Degree, ...]:
        return (self.value,)


@dataclass(eq=False)
class Varies(Obstacle):
    """The degree of an operand varies along a dim that is reduced or regrouped."""

    sort: Sort
    value: Degree
    position: int
    """The dim, counted from the last one."""
    reduced: bool = True

    @property
    def values(self) -> tuple[Degree, ...]:
        return (self.value,)
