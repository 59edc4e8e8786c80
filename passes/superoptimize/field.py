"""
Fingerprints: tensors over Z_P x Z_Q, in independent trials.

A `FieldValue` holds, for every trial, one residue modulo P an element, and one modulo Q
as long as that is defined. The Z_P part identifies the value: two values of one shape
with equal Z_P parts in all trials are the same function of the inputs, except with a
probability of about (degree / P) ** trials. The Z_Q part is the exponent that a later
`exp` raises the trial's root of unity to, so that exp(a + b) = exp(a) exp(b).

Functions outside of that algebra are keyed hashes (sound, without any law), except for
the square root, which is a root on squares: see `sampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleave.passes.superoptimize import modular
from cleave.passes.superoptimize.modular import HALF, MASK, Array, P, Q, key_of, mix
from cleave.passes.superoptimize.semantics import Dim, Shape, Undefined

TRIALS = 2

_EXACT_DENOMINATOR = 1 << 10
_EXACT_MAGNITUDE = 1 << 20


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A tensor in every sample: arrays of shape [samples, *dims], dtype int64."""

    p: Array
    q: Array | None
    maximum: Array | None = None
    """Of a maximum: the sum of the hashes of what it was taken of."""

    @property
    def rank(self) -> int:
        return self.p.ndim - 1

    def map(self, change: Callable[[Array], Array]) -> FieldValue:
        """The same elements under other indices."""
        return FieldValue(
            change(self.p),
            None if self.q is None else change(self.q),
            None if self.maximum is None else change(self.maximum),
        )

    def elements(self) -> bytes:
        """The elements of each sample in ascending order: what views do not change."""
        return np.sort(self.p.reshape(len(self.p), -1)).tobytes()

    def with_rank(self, rank: int) -> FieldValue:
        """With dims of size 1 in front added or dropped."""
        extra = rank - self.rank
        if extra == 0:
            return self
        ones = (1,) * extra
        dropped = 1 + max(0, -extra)
        return self.map(lambda x: x.reshape(x.shape[0], *ones, *x.shape[dropped:]))


@dataclass(frozen=True, slots=True)
class Radicand:
    """What a square root was taken of."""

    p: Array
    is_square: NDArray[np.bool_]


@lru_cache(maxsize=8)
def _exponential_tables(seed: int) -> tuple[Array, Array]:
    """
    `w ** i` and `w ** (i * 2**15)` for i < 2**15, for the root of unity of each trial:
    together they give every power of w in one multiplication.
    """
    generator = np.random.default_rng([seed, 1])
    low: list[Array] = []
    high: list[Array] = []
    for _ in range(TRIALS):
        # A square other than 1 has order Q.
        root = pow(int(generator.integers(2, P - 1)), 2, P)
        low.append(modular.powers(root, 1 << HALF, P))
        high.append(modular.powers(pow(root, 1 << HALF, P), 1 << HALF, P))
    return np.stack(low), np.stack(high)


class Field:
    """
    The domain of fingerprints (`semantics.Domain`).

    `samples` is a multiple of the number of trials: sample i belongs to trial
    i % TRIALS, and samples of one trial share its root of unity, its hash keys and its
    constants but have inputs of their own, so that suitable ones can be chosen.
    """

    def __init__(
        self, seed: int, extent: Callable[[Dim], int], samples: int = TRIALS
    ) -> None:
        self.seed = seed
        self.extent = extent
        self.trial = np.arange(samples) % TRIALS
        self.radicands: list[Radicand] | None = None
        """If a list: each square root adds what is under it."""
        self._low, self._high = _exponential_tables(seed)
        self._generator = np.random.default_rng([seed, 2])
        self._keys: dict[tuple[str, int], NDArray[np.uint64]] = {}

    def random(self, shape: Shape) -> FieldValue:
        """An input: independent non-zero residues."""
        extents = (len(self.trial), *map(self.extent, shape))
        return FieldValue(
            self._generator.integers(1, P, size=extents, dtype=np.int64),
            self._generator.integers(1, Q, size=extents, dtype=np.int64),
        )

    # Numbers

    def number(self, value: Any) -> FieldValue:
        """
        A scalar.

        Integers and short binary fractions are exact. Any other number, and the extent
        of a symbolic dim, is generic, one for each distinct value: what is equal for
        all of them is equal for this one. Positive ones are squares, as real ones are.
        """
        if isinstance(value, int | float):
            exact = isfinite(value) and abs(value) <= _EXACT_MAGNITUDE
            scaled = value * _EXACT_DENOMINATOR
            if exact and scaled == int(scaled):
                return FieldValue(*(self._exact(int(scaled), m) for m in (P, Q)))
            if value < 0:
                return self.neg(self.number(-value))
        return FieldValue(*(self._generic(str(value), m) for m in (P, Q)))

    def _exact(self, scaled: int, modulus: int) -> Array:
        value = scaled * pow(_EXACT_DENOMINATOR, -1, modulus) % modulus
        return np.full(len(self.trial), value, dtype=np.int64)

    def _generic(self, text: str, modulus: int) -> Array:
        x = self._hashed(mix(self._key(f"number {text}", modulus)), modulus)
        return x * x % modulus

    # Rational functions

    def add(self, a: FieldValue, b: FieldValue) -> FieldValue:
        a, b = _aligned(a, b)
        q = None if a.q is None or b.q is None else (a.q + b.q) % Q
        return FieldValue((a.p + b.p) % P, q)

    def sub(self, a: FieldValue, b: FieldValue) -> FieldValue:
        a, b = _aligned(a, b)
        q = None if a.q is None or b.q is None else (a.q - b.q) % Q
        return FieldValue((a.p - b.p) % P, q)

    def mul(self, a: FieldValue, b: FieldValue) -> FieldValue:
        a, b = _aligned(a, b)
        q = None if a.q is None or b.q is None else a.q * b.q % Q
        return FieldValue(a.p * b.p % P, q)

    def div(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return self.mul(a, self.reciprocal(b))

    def reciprocal(self, a: FieldValue) -> FieldValue:
        p = modular.inverse(a.p, P)
        q = None if a.q is None else modular.inverse(a.q, Q)
        if p is None or (q is None and a.q is not None):
            raise Undefined("division by zero")
        return FieldValue(p, q)

    def square(self, a: FieldValue) -> FieldValue:
        return self.mul(a, a)

    def neg(self, a: FieldValue) -> FieldValue:
        return FieldValue(-a.p % P, None if a.q is None else -a.q % Q)

    def select(self, mask: FieldValue, a: FieldValue, b: FieldValue) -> FieldValue:
        """A generic mask instead of one of zeros and ones."""
        return self.add(b, self.mul(mask, self.sub(a, b)))

    def contract(self, a: FieldValue, b: FieldValue, dim: Dim) -> FieldValue:
        a, b = _aligned(a, b)
        p = modular.matmul(a.p, b.p, P)
        q = None if a.q is None or b.q is None else modular.matmul(a.q, b.q, Q)
        return FieldValue(p, q)

    def sum(self, a: FieldValue, axis: int, dim: Dim) -> FieldValue:
        p = a.p.sum(axis=axis + 1, keepdims=True) % P
        q = None if a.q is None else a.q.sum(axis=axis + 1, keepdims=True) % Q
        return FieldValue(p, q)

    # Other functions

    def exp(self, a: FieldValue) -> FieldValue:
        """The root of unity to the power of the Z_Q part; it has no Z_Q part itself."""
        if a.q is None:
            return self.opaque("exp", a)
        trial = self._per_sample(self.trial, a.q.ndim)
        powers = self._low[trial, a.q & MASK] * self._high[trial, a.q >> HALF]
        return FieldValue(powers % P, None)

    def log(self, a: FieldValue) -> FieldValue:
        return self.opaque("log", a)

    def sqrt(self, a: FieldValue) -> FieldValue:
        p = modular.root(a.p, P)
        q = None if a.q is None else modular.root(a.q, Q)
        if self.radicands is not None:
            is_square = p * p % P == a.p
            if q is not None:
                is_square &= q * q % Q == a.q
            self.radicands.append(Radicand(a.p, is_square))
        return FieldValue(p, q)

    def opaque(self, name: str, *args: FieldValue) -> FieldValue:
        """
        A keyed hash of the Z_P parts, for both parts of the result.

        Equal arguments give equal results; different ones random, independent results.
        So a function of which nothing is known becomes a fresh variable for every
        distinct argument, and Schwartz-Zippel applies to the whole.
        """
        rank = max(arg.rank for arg in args)
        p, q = (
            self._hash(name, [arg.with_rank(rank).p for arg in args], modulus)
            for modulus in (P, Q)
        )
        return FieldValue(p, q)

    def max(self, a: FieldValue, axis: int, dim: Dim) -> FieldValue:
        """
        A symmetric function of the elements: a hash of the sum of their hashes.

        That sum is kept, so that a maximum of maxima is the maximum of all elements.
        """
        elements = self._hashes_of_elements(a)
        return self._maximum(elements.sum(axis=axis + 1, keepdims=True) % P)

    def maximum(self, a: FieldValue, b: FieldValue) -> FieldValue:
        a, b = _aligned(a, b)
        return self._maximum(
            (self._hashes_of_elements(a) + self._hashes_of_elements(b)) % P
        )

    def _hashes_of_elements(self, a: FieldValue) -> Array:
        return self._hash("element", [a.p], P) if a.maximum is None else a.maximum

    def _maximum(self, elements: Array) -> FieldValue:
        p, q = (self._hash("max", [elements], modulus) for modulus in (P, Q))
        return FieldValue(p, q, elements)

    def _hash(self, name: str, args: Sequence[Array], modulus: int) -> Array:
        rank = max(arg.ndim for arg in args)
        state = self._per_sample(self._key(name, modulus), rank)
        for arg in args:
            state = mix(state + arg.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        return self._hashed(state, modulus)

    @staticmethod
    def _hashed(state: NDArray[np.uint64], modulus: int) -> Array:
        return (state % np.uint64(modulus)).astype(np.int64)

    def _key(self, name: str, modulus: int) -> NDArray[np.uint64]:
        """A hash key for every sample."""
        if (keys := self._keys.get((name, modulus))) is None:
            trials = [key_of(name, modulus, self.seed, t) for t in range(TRIALS)]
            keys = self._keys[name, modulus] = np.array(trials)[self.trial]
        return keys

    @staticmethod
    def _per_sample(x: NDArray[Any], rank: int) -> NDArray[Any]:
        return x.reshape(-1, *(1,) * (rank - 1))

    # Other indices

    def transpose(self, a: FieldValue, permutation: Sequence[int]) -> FieldValue:
        axes = (0, *(axis + 1 for axis in permutation))
        return a.map(lambda x: np.ascontiguousarray(x.transpose(axes)))

    def reshape(self, a: FieldValue, shape: Shape) -> FieldValue:
        extents = tuple(map(self.extent, shape))
        return a.map(lambda x: x.reshape(x.shape[0], *extents))


def _aligned(a: FieldValue, b: FieldValue) -> tuple[FieldValue, FieldValue]:
    rank = max(a.rank, b.rank)
    return a.with_rank(rank), b.with_rank(rank)
