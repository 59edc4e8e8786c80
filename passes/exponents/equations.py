"""Homogeneous linear equations over the rationals, solved one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

Vector = tuple[Fraction, ...]


class SolutionSpace:
    """
    All solutions of the equations so far, in `count` unknowns: the span of `basis`.

    The basis is in reduced form: each vector is the only one with an entry, 1, at its
    first non-zero position; so independent parts of a system have vectors of their own.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.basis: list[Vector] = [
            tuple(Fraction(i == j) for j in range(count)) for i in range(count)
        ]

    def require(self, equation: Mapping[int, Fraction]) -> None:
        """Keep the solutions with `sum of coefficient * unknown = 0`."""
        values = [
            sum((c * vector[i] for i, c in equation.items()), Fraction(0))
            for vector in self.basis
        ]
        pivot = next((i for i, value in enumerate(values) if value), None)
        if pivot is None:
            return
        kept = [
            _combined(vector, self.basis[pivot], value / values[pivot])
            for i, (vector, value) in enumerate(zip(self.basis, values, strict=True))
            if i != pivot
        ]
        self.basis = _reduced(kept)

    def is_zero(self, unknown: int) -> bool:
        return not any(vector[unknown] for vector in self.basis)


def _combined(a: Sequence[Fraction], b: Sequence[Fraction], times: Fraction) -> Vector:
    """a - times * b"""
    return tuple(x - times * y for x, y in zip(a, b, strict=True))


def _reduced(vectors: list[Vector]) -> list[Vector]:
    """Gauss-Jordan elimination of independent vectors."""
    rows = list(vectors)
    done = 0
    for column in range(len(rows[0]) if rows else 0):
        found = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[done], rows[found] = rows[found], rows[done]
        pivot = tuple(x / rows[done][column] for x in rows[done])
        rows = [
            pivot if i == done else _combined(row, pivot, row[column])
            for i, row in enumerate(rows)
        ]
        done += 1
    return rows
