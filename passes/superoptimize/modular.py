"""
Arithmetic modulo the two primes of the fingerprints, vectorized and exact in int64.

`Q` is the largest Sophie Germain prime below 2**29 that is 3 modulo 4, and `P = 2Q + 1`
is prime, below 2**30, and 3 modulo 4 too. So products stay below 2**60, square roots
are powers, and Z_P has elements of order Q: a root of unity `w` for exponents in Z_Q.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]

Q = 536870219
P = 2 * Q + 1

HALF = 15
"""Bits of a limb: half of the bits of a residue."""
MASK = (1 << HALF) - 1

_EXACT_TERMS = 8
"""Products below 2**60 whose sum still fits into int64."""
_LIMB_TERMS = 1 << 22
"""Products of two limbs (below 2**30), two sums of which are exact in float64."""


def residue(value: int, modulus: int) -> int:
    return value % modulus


def matmul(a: Array, b: Array, modulus: int) -> Array:
    """
    `a @ b` modulo `modulus`, for residues of shapes [.., m, k] and [.., k, n].

    Up to 8 products fit into int64. Longer sums are taken over halves of the residues
    (limbs), whose products a float64 sums exactly, which also lets BLAS do the work.
    """
    terms = a.shape[-1]
    if terms <= _EXACT_TERMS:
        return np.matmul(a, b) % modulus
    total = np.zeros((), dtype=np.int64)
    for start in range(0, terms, _LIMB_TERMS):
        part = slice(start, start + _LIMB_TERMS)
        total = total + _limb_matmul(a[..., part], b[..., part, :], modulus)
    return total % modulus


def _limb_matmul(a: Array, b: Array, modulus: int) -> Array:
    a_low, a_high = (a & MASK).astype(np.float64), (a >> HALF).astype(np.float64)
    b_low, b_high = (b & MASK).astype(np.float64), (b >> HALF).astype(np.float64)
    result = np.matmul(a_high, b_high).astype(np.int64) % modulus
    middle = np.matmul(a_high, b_low)
    middle += np.matmul(a_low, b_high)
    result = ((result << HALF) + middle.astype(np.int64)) % modulus
    low = np.matmul(a_low, b_low).astype(np.int64)
    return ((result << HALF) + low) % modulus


def power(x: Array, exponent: int, modulus: int) -> Array:
    """`x ** exponent` for an exponent of at least 1."""
    result: Array | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x % modulus
        exponent >>= 1
        if exponent:
            x = x * x % modulus
    assert result is not None
    return result


def inverse(x: Array, modulus: int) -> Array | None:
    """`1 / x` element by element, or None if an element is 0."""
    if not x.all():
        return None
    if x.size > 64:
        return power(x, modulus - 2, modulus)
    # Few elements: one inversion of the product of all of them (Montgomery), in
    # Python's integers, beats sixty NumPy calls.
    elements: list[int] = x.ravel().tolist()
    prefixes: list[int] = []
    product = 1
    for element in elements:
        prefixes.append(product)
        product = product * element % modulus
    rest = pow(product, -1, modulus)
    for position in range(len(elements) - 1, -1, -1):
        element = elements[position]
        elements[position] = rest * prefixes[position] % modulus
        rest = rest * element % modulus
    return np.array(elements, dtype=np.int64).reshape(x.shape)


def root(x: Array, modulus: int) -> Array:
    """
    The multiplicative square root: `root(x)**2` is `x` for a square and `-x` otherwise.
    """
    return power(x, (modulus + 1) // 4, modulus)


def powers(base: int, count: int, modulus: int) -> Array:
    """`base ** 0, ..., base ** (count - 1)`; `count` is a power of two."""
    table = np.ones(1, dtype=np.int64)
    step = base
    while len(table) < count:
        table = np.concatenate([table, table * step % modulus])
        step = step * step % modulus
    return table


def key_of(*parts: object) -> np.uint64:
    """64 bits that stand for the parts, the same in every process."""
    text = "\0".join(map(repr, parts)).encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return np.frombuffer(digest, dtype=np.uint64)[0]


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words without structure (the finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
