"""
Degrees: what becomes of a value when exponents are shifted (DESIGN section 7).

Let tensors c be added somewhere. A value v then becomes `v * exp(w)` or `v + a`, where
w (its *scale*) and a (its *offset*) are linear forms in the tensors c; at most one of
the two is not 0. `exp` makes a scale of an offset and `log` the reverse; products add
scales; sums and selections need equal scales, a reduction needs one that is constant
along the reduced dim, and a function without laws needs none.

The proof is by induction over the graph and needs nothing of c but its dims: where both
degrees of every output are 0, the outputs are the same for all c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cleave.dialects.algebra.contraction import LOWEST
from cleave.passes.dim_groups import regroupings
from cleave.passes.exponents.degree import (
    Degree,
    Moves,
    Obstacle,
    Sort,
    Unlike,
    Varies,
)
from cleave.passes.exponents.factors import Factor, Placed, factor_of_number
from cleave.passes.exponents.forms import ZERO, Form
from cleave.passes.superoptimize.semantics import Dim, Shape


class Degrees:
    """
    The domain of degrees (`semantics.Domain`).

    A violated rule is an `Obstacle`, which is raised unless `meet` is overridden; then
    the result is as if the obstacle had been removed.
    """

    def meet(self, obstacle: Obstacle) -> None:
        raise obstacle

    def divides(self, divisor: Degree) -> None:
        """Called with everything that is divided by."""

    # Rules of both sorts

    def _forbid(self, sort: Sort, *values: Degree) -> None:
        for value in values:
            if sort.of(value):
                self.meet(Moves(sort, value))

    def _common(self, sort: Sort, a: Degree, b: Degree) -> Form:
        """The degree of a sort that both have."""
        left, right = sort.of(a), sort.of(b)
        if a.has_any_scale if sort is Sort.SCALE else a.has_any_offset:
            return right
        if b.has_any_scale if sort is Sort.SCALE else b.has_any_offset:
            return left
        if left != right:
            self.meet(Unlike(sort, a, b))
            if sort is Sort.OFFSET:
                return ZERO
        return left or right

    def _constant_along(
        self, a: Degree, positions: Sequence[int], *, reduced: bool = True
    ) -> Degree:
        for sort in Sort:
            for position in positions:
                if sort.of(a).varies_at(position):
                    self.meet(Varies(sort, a, position, reduced))
        return a

    # Numbers and sums

    def number(self, value: Any) -> Degree:
        number = float(value) if isinstance(value, int | float) else None
        lowest = number is not None and number <= LOWEST
        factor = factor_of_number(value)
        return Degree((), factor=factor, number=number, may_vanish=lowest)

    def add(self, a: Degree, b: Degree) -> Degree:
        shape = broadcast(a, b)
        if a.scale or b.scale:
            self._forbid(Sort.OFFSET, a, b)
            scale = self._common(Sort.SCALE, a, b)
            vanish = [x.may_vanish for x in (a, b) if not x.has_any_scale]
            masks = _common_masks(a, b)
            return Degree(shape, scale, may_vanish=all(vanish), masks=masks)
        vanishes = a.may_vanish or b.may_vanish
        return Degree(shape, offset=a.offset + b.offset, may_vanish=vanishes)

    def sub(self, a: Degree, b: Degree) -> Degree:
        return self.add(a, self.neg(b))

    def neg(self, a: Degree) -> Degree:
        factor = a.factor and Factor(-a.factor.rational, a.factor.powers)
        number = None if a.number is None else -a.number
        return replace(
            a,
            offset=-a.offset,
            factor=factor,
            number=number,
            may_vanish=a.may_vanish and bool(a.scale),
        )

    # Products

    def mul(self, a: Degree, b: Degree) -> Degree:
        for mask, other in ((a, b), (b, a)):
            if _hides_nothing(mask, other):
                return replace(other, is_unchanged=True)
        offset = ZERO
        if a.offset or b.offset:
            moving, other = (a, b) if a.offset else (b, a)
            if moving.scale or other.moves or other.factor is None:
                self._forbid(Sort.OFFSET, a, b)
            else:
                offset = moving.offset.times(other.factor)
        factor = a.factor * b.factor if a.factor and b.factor else None
        number = 0.0 if a.has_any_scale or b.has_any_scale else None
        scale = a.scale + b.scale
        vanishes = _vanishes_in_product(a, b)
        masks = a.masks | b.masks | a.as_mask | b.as_mask
        return Degree(
            broadcast(a, b), scale, offset, factor, number, vanishes, masks=masks
        )

    def div(self, a: Degree, b: Degree) -> Degree:
        self._forbid(Sort.OFFSET, b)
        self.divides(b)
        offset = ZERO
        if a.offset:
            if b.moves or b.factor is None:
                self._forbid(Sort.OFFSET, a)
            else:
                offset = a.offset.times(b.factor.inverse())
        factor = a.factor * b.factor.inverse() if a.factor and b.factor else None
        number = 0.0 if a.has_any_scale else None
        return Degree(
            broadcast(a, b),
            a.scale - b.scale,
            offset,
            factor,
            number,
            a.may_vanish,
            masks=a.masks,
        )

    def square(self, a: Degree) -> Degree:
        self._forbid(Sort.OFFSET, a)
        return Degree(
            a.shape,
            a.scale.scaled(Fraction(2)),
            may_vanish=_is_zero_somewhere(a),
            masks=a.masks,
        )

    def sqrt(self, a: Degree) -> Degree:
        self._forbid(Sort.OFFSET, a)
        return Degree(
            a.shape,
            a.scale.scaled(Fraction(1, 2)),
            may_vanish=_is_zero_somewhere(a),
            masks=a.masks,
            operand=a.operand,
        )

    def contract(self, a: Degree, b: Degree, dim: Dim) -> Degree:
        self._forbid(Sort.OFFSET, a, b)
        a = self._constant_along(a, [0])
        b = self._constant_along(b, [1])
        rank = max(len(a.shape), len(b.shape))
        left, left_masks = _without(a, 0, rank)
        right, right_masks = _without(b, 1, rank)
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*batch, a.shape[-2], b.shape[-1])
        vanishes = _is_zero_somewhere(a) or _is_zero_somewhere(b)
        masks = left_masks | right_masks
        return Degree(shape, left.scale + right.scale, may_vanish=vanishes, masks=masks)

    # Exponentials

    def exp(self, a: Degree) -> Degree:
        self._forbid(Sort.SCALE, a)
        return Degree(a.shape, scale=a.offset, may_vanish=a.may_vanish)

    def log(self, a: Degree) -> Degree:
        self._forbid(Sort.OFFSET, a)
        return Degree(a.shape, offset=a.scale, may_vanish=a.may_vanish)

    # Other functions

    def opaque(self, name: str, *args: Degree) -> Degree:
        for sort in Sort:
            self._forbid(sort, *args)
        return Degree(broadcast(*args))

    def maximum(self, a: Degree, b: Degree) -> Degree:
        scale = self._common(Sort.SCALE, a, b)
        offset = self._common(Sort.OFFSET, a, b)
        vanishes = a.may_vanish and b.may_vanish
        masks = _common_masks(a, b)
        return Degree(broadcast(a, b), scale, offset, may_vanish=vanishes, masks=masks)

    def select(self, mask: Degree, a: Degree, b: Degree) -> Degree:
        for sort in Sort:
            self._forbid(sort, mask)
        scale = self._common(Sort.SCALE, a, b)
        offset = self._common(Sort.OFFSET, a, b)
        if scale:
            self._forbid(Sort.OFFSET, a, b)
        vanishes = a.may_vanish or b.may_vanish or bool(scale and b.has_any_scale)
        masks = _common_masks(a, b)
        shape = broadcast(mask, a, b)
        if b.has_any_scale:
            if _hides_nothing(mask, a):
                return replace(a, is_unchanged=True)
            masks |= mask.as_mask
        return Degree(shape, scale, offset, may_vanish=vanishes, masks=masks)

    # Reductions

    def sum(self, a: Degree, axis: int, dim: Dim) -> Degree:
        self._forbid(Sort.OFFSET, a)
        return replace(self._reduced(a, axis), offset=ZERO)

    def max(self, a: Degree, axis: int, dim: Dim) -> Degree:
        return self._reduced(a, axis)

    def _reduced(self, a: Degree, axis: int) -> Degree:
        rank = len(a.shape)
        position = rank - 1 - axis
        a = self._constant_along(a, [position])
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        left, masks = _without(a, position, rank)
        return Degree(
            shape, left.scale, left.offset, may_vanish=a.may_vanish, masks=masks
        )

    # Views

    def transpose(self, a: Degree, permutation: Sequence[int]) -> Degree:
        rank = len(permutation)
        before = {rank - 1 - i: rank - 1 - axis for i, axis in enumerate(permutation)}
        shape = tuple(a.shape[axis] for axis in permutation)
        return _viewed(a, shape, before.get)

    def reshape(self, a: Degree, shape: Shape) -> Degree:
        """Dims that are regrouped lose their place: no degree may vary along them."""
        before: dict[int, int] = {}
        regrouped: list[int] = []
        for old, new in regroupings(a.shape, shape):
            if len(old) == len(new) == 1:
                before[len(shape) - 1 - new[0]] = len(a.shape) - 1 - old[0]
            else:
                regrouped += [len(a.shape) - 1 - axis for axis in old]
        a = self._constant_along(a, regrouped, reduced=False)
        return _viewed(a, shape, before.get)


def _viewed(a: Degree, shape: Shape, before: Callable[[int], int | None]) -> Degree:
    def place(tensor: Placed) -> Placed:
        return tensor.at(before, len(shape))

    def is_kept(tensor: Placed) -> bool:
        return tensor.axes == place(tensor).axes

    factor = a.factor
    if factor and not all(is_kept(base) for base, _ in factor.powers.items):
        factor = None
    return replace(
        a,
        shape=shape,
        scale=a.scale.map(place),
        offset=a.offset.map(place),
        factor=factor and factor.map(place),
        masks=frozenset(place(mask) for mask in a.masks if is_kept(mask)),
    )


def _without(a: Degree, position: int, rank: int) -> tuple[Degree, frozenset[Placed]]:
    """A value with one position reduced, and the masks that do not vary along it."""

    def place(tensor: Placed) -> Placed:
        return tensor.at(lambda p: None if p == position else p, rank)

    masks = frozenset(place(m) for m in a.masks if not m.varies_at(position))
    return replace(a, scale=a.scale.map(place), offset=a.offset.map(place)), masks


def _common_masks(a: Degree, b: Degree) -> frozenset[Placed]:
    if a.has_any_scale or b.has_any_scale:
        return a.masks | b.masks
    return a.masks & b.masks


def _hides_nothing(mask: Degree, a: Degree) -> bool:
    """Whether a value is 0 already where a mask does not hold."""
    known = mask.as_mask
    return bool(known) and known <= a.masks and broadcast(mask, a) == a.shape


def _is_zero_somewhere(a: Degree) -> bool:
    return bool(a.scale) and a.may_vanish


def _vanishes_in_product(a: Degree, b: Degree) -> bool:
    if a.scale or b.scale:
        return _is_zero_somewhere(a) or _is_zero_somewhere(b)
    # Of a minus infinity, times what is not known to be positive.
    return a.may_vanish or b.may_vanish


def broadcast(*values: Degree) -> Shape:
    return broadcast_shapes(*(value.shape for value in values))


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Right-aligned, dims of size 1 stretched; shapes that fit, as was verified."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(
        next((dim for dim in dims if dim != 1), 1) for dims in zip(*padded, strict=True)
    )
