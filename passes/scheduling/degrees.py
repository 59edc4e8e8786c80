"""
Degrees in a reference: what happens to a value when the reference moves.

When a reference goes from r to r + d, a value v becomes `v + a * d` (its additive
degree is a) or `v * exp(m * d)` (its multiplicative degree is m). `exp(s - r)` has
m = -1, so has its sum, and the quotient of two such sums has 0 (DESIGN section 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Block, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.semantics import Dim, Shape, Undefined


@dataclass(frozen=True)
class Degree:
    """The degrees of a value, one of which is 0; `number` if it is a known number."""

    additive: float = 0.0
    multiplicative: float = 0.0
    number: float | None = None

    @property
    def is_any(self) -> bool:
        """0 and -inf stay what they are however much they are scaled or shifted."""
        return self.number in (0.0, -float("inf"))


def degrees_of(
    ops: Sequence[Operator], reference: SSAValue, block: Block
) -> dict[Operator, float] | None:
    """
    For each operator the w with which its result is rescaled by `exp(w * (old - new))`
    when the reference moves from old to new; None if one of them is not homogeneous.
    """
    degrees: dict[SSAValue, Degree] = {}
    domain = Degrees()
    for op in block.ops:
        if not isinstance(op, Operator):
            continue
        result = op.results[0]
        if result is reference:
            degrees[result] = Degree(additive=1.0)
            continue
        if not op.operands:
            # Generators do not move with the reference; a constant is a number.
            degrees[result] = domain.number(op.params.get("value"))
            continue
        shapes = [type_.dims for type_ in op.operand_types]
        try:
            operands = [_degree(operand, degrees, block) for operand in op.operands]
            degrees[result] = op.interpret(domain, operands, shapes, op.params)
        except (Undefined, NotImplementedError):
            continue
    found: dict[Operator, float] = {}
    for op in ops:
        degree = degrees.get(op.results[0])
        if degree is None or degree.additive:
            return None
        found[op] = -degree.multiplicative
    return found


def _degree(value: SSAValue, degrees: dict[SSAValue, Degree], block: Block) -> Degree:
    if value in degrees:
        return degrees[value]
    owner = value.owner
    if isinstance(owner, Operator) and owner.parent_block() is block:
        raise Undefined("computed from what has no degree")
    return Degree()


class Degrees:
    """The domain of degrees (`semantics.Domain`)."""

    def number(self, value: Any) -> Degree:
        return Degree(number=float(value) if isinstance(value, int | float) else None)

    def add(self, a: Degree, b: Degree) -> Degree:
        if a.is_any or b.is_any:
            return a if b.is_any else b
        if a.multiplicative or b.multiplicative:
            return self._same(a, b)
        return Degree(a.additive + b.additive)

    def sub(self, a: Degree, b: Degree) -> Degree:
        return self.add(a, self.neg(b))

    def square(self, a: Degree) -> Degree:
        self._require(a)
        return Degree(0.0, 2 * a.multiplicative)

    def neg(self, a: Degree) -> Degree:
        return Degree(-a.additive, a.multiplicative)

    def mul(self, a: Degree, b: Degree) -> Degree:
        if a.number is not None:
            a, b = b, a
        if b.number is not None:
            return Degree(a.additive * b.number, a.multiplicative)
        self._require(a, b)
        return Degree(0.0, a.multiplicative + b.multiplicative)

    def div(self, a: Degree, b: Degree) -> Degree:
        if b.number:
            return Degree(a.additive / b.number, a.multiplicative)
        self._require(a, b)
        return Degree(0.0, a.multiplicative - b.multiplicative)

    def exp(self, a: Degree) -> Degree:
        if a.multiplicative:
            raise Undefined("an exponential of what is scaled")
        return Degree(0.0, a.additive)

    def log(self, a: Degree) -> Degree:
        self._require(a)
        return Degree(a.multiplicative)

    def sqrt(self, a: Degree) -> Degree:
        self._require(a)
        return Degree(0.0, a.multiplicative / 2)

    def maximum(self, a: Degree, b: Degree) -> Degree:
        return self._same(a, b)

    def opaque(self, name: str, *args: Degree) -> Degree:
        if any(arg.additive or arg.multiplicative for arg in args):
            raise Undefined(f"{name} of what is shifted or scaled")
        return Degree()

    def select(self, mask: Degree, a: Degree, b: Degree) -> Degree:
        return self._same(a, b)

    def contract(self, a: Degree, b: Degree, dim: Dim) -> Degree:
        self._require(a, b)
        return Degree(0.0, a.multiplicative + b.multiplicative)

    def sum(self, a: Degree, axis: int, dim: Dim) -> Degree:
        self._require(a)
        return a

    def max(self, a: Degree, axis: int, dim: Dim) -> Degree:
        return a

    def transpose(self, a: Degree, permutation: Sequence[int]) -> Degree:
        return a

    def reshape(self, a: Degree, shape: Shape) -> Degree:
        return a

    def _same(self, a: Degree, b: Degree) -> Degree:
        """The degree that both have, so that a combination of them has it, too."""
        if a.is_any or b.is_any:
            return a if b.is_any else b
        if (a.additive, a.multiplicative) != (b.additive, b.multiplicative):
            raise Undefined("operands of different degrees")
        return Degree(a.additive, a.multiplicative)

    def _require(self, *values: Degree) -> None:
        if any(value.additive for value in values):
            raise Undefined("a product or a sum of what is shifted")
