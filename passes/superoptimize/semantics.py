"""
The vocabulary in which an operator's class says what it means.

An operator is defined once, by `interpret`, over any *domain* of values:

    class Exp:
        @classmethod
        def interpret(cls, domain, values, shapes, params):
            return domain.exp(values[0])

    Div: domain.div(values[0], values[1])
    Square: domain.square(values[0])
    Silu: domain.opaque(cls.name, values[0])
    Matmul, without flags: domain.contract(values[0], values[1], shapes[0][-1])
    ReduceSum: domain.sum(values[0], params["dim"], shapes[0][params["dim"]])
    Transpose: domain.transpose(values[0], params["permutation"])
    Cast: values[0]

Three domains speak this vocabulary, and with them one method gives the operator's

* finite-field meaning (`field.Field`, values are arrays over Z_p x Z_q),
* abstract class (`abstract.Abstraction`, values are interned multisets of factors), and
* positivity (`signs.Signs`, values are signs; it refuses what may be undefined).

An operator without field meaning does not define `interpret`; the search refuses it by
name. Dims are whatever the graph's shapes are made of; only `==` and `hash` are asked
of them, and 1 is the dim that broadcasts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

V = TypeVar("V")
"""A value of a domain."""
Dim: TypeAlias = Hashable
Shape: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Mapping[str, Any]


class Undefined(ArithmeticError):
    """No such value: a division by zero, the logarithm of who knows what."""


class Domain(Protocol[V]):
    """
    The operations that operators are made of.

    Elementwise operations broadcast dims of size 1, right-aligned as in NumPy. Each may
    raise `Undefined`.
    """

    def number(self, value: Any) -> V:
        """A scalar: a float, an int, or a dim whose extent is the number."""
        ...

    def add(self, a: V, b: V) -> V: ...

    def sub(self, a: V, b: V) -> V: ...

    def mul(self, a: V, b: V) -> V: ...

    def div(self, a: V, b: V) -> V: ...

    def neg(self, a: V) -> V: ...

    def square(self, a: V) -> V: ...

    def exp(self, a: V) -> V: ...

    def log(self, a: V) -> V: ...

    def sqrt(self, a: V) -> V: ...

    def maximum(self, a: V, b: V) -> V: ...

    def opaque(self, name: str, *args: V) -> V:
        """
        An elementwise function of which no law is used.

        Everything that tells it from other functions is in `name`, parameters too.
        """
        ...

    def select(self, mask: V, a: V, b: V) -> V:
        """`a` where the mask holds, else `b`."""
        ...

    def contract(self, a: V, b: V, dim: Dim) -> V:
        """`[.., m, dim] x [.., dim, n] -> [.., m, n]`; leading dims broadcast."""
        ...

    def sum(self, a: V, axis: int, dim: Dim) -> V:
        """The sum over an axis of extent `dim`; the axis stays with size 1."""
        ...

    def max(self, a: V, axis: int, dim: Dim) -> V:
        """The largest element along an axis of extent `dim`; it stays with size 1."""
        ...

    def transpose(self, a: V, permutation: Sequence[int]) -> V:
        """Result axis `i` is the operand's axis `permutation[i]`."""
        ...

    def reshape(self, a: V, shape: Shape) -> V: ...
