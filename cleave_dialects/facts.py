"""
Facts: what is declared about the names in dims, and what follows from it.

    >>> facts = Facts(map(parse_fact_text, ("s | K", "K = 4096", "L >= 128")))
    >>> K, s, L = symbol("K"), symbol("s"), symbol("L")
    >>> facts.equal(floordiv(K, s) * s, K), facts.at_most(L, 128)
    (True, False)

Nothing is proved from what is not declared: without `s | K`, `K floordiv s * s` may be
less than `K`. A symbol is bound by a fact (`K = 4096`) and stays in the dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cleave.dialects.dims import Dim, substitute
from cleave.dialects.fact import (
    Fact,
    FactError,
    Relation,
    parse_fact_text,
    parse_fact_tokens,
)
from cleave.dialects.fact_consequences import Range, consequences_of

__all__ = [
    "Fact",
    "FactError",
    "Facts",
    "Range",
    "Relation",
    "parse_fact_text",
    "parse_fact_tokens",
]


class Facts:
    """
    Declared facts, the symbols that are sizes (at least 1), and ranges of iterators.

    Immutable. `equal`, `divides` and `at_most` are True only where the facts prove it
    for all values of the names; False means "not proved". Other names are at least 0.
    """

    def __init__(
        self,
        facts: Iterable[Fact] = (),
        symbols: Iterable[str] = (),
        ranges: Mapping[str, Range] | None = None,
    ):
        self._facts = tuple(dict.fromkeys(facts))
        self.symbols = frozenset(symbols)
        self._ranges = tuple((ranges or {}).items())
        self._known = consequences_of(self._facts, self.symbols, self._ranges)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __str__(self) -> str:
        return ", ".join(map(str, self._facts))

    @property
    def ranges(self) -> dict[str, Range]:
        return dict(self._ranges)

    @property
    def binding(self) -> dict[str, Dim]:
        """The value of each bound symbol, with bound symbols in it replaced."""
        return dict(self._known.bindings.values)

    def extend(self, *facts: Fact, ranges: Mapping[str, Range] | None = None) -> Facts:
        """These facts and more."""
        return Facts(
            (*self._facts, *facts), self.symbols, {**self.ranges, **(ranges or {})}
        )

    def resolve(self, dim: Dim) -> Dim:
        """The dim with bound symbols replaced."""
        return substitute(dim, self._known.bindings.values)

    def simplify(self, dim: Dim) -> Dim:
        """
        An equal dim with what the facts decide folded: divisions that are exact, `mod`
        that is 0, `min` and `max` that one argument settles. Bound symbols stay.
        """
        return self._known.symbolic.simplify(dim)

    def equal(self, a: Dim, b: Dim) -> bool:
        difference = a - b
        return (
            difference == 0
            or self._known.symbolic.is_zero(difference)
            or self._known.resolved.is_zero(self.resolve(difference))
        )

    def divides(self, a: Dim, b: Dim) -> bool:
        """True if it is proved that b is a multiple of a."""
        return self._known.symbolic.divides(a, b) or self._known.resolved.divides(
            self.resolve(a), self.resolve(b)
        )

    def at_most(self, a: Dim, b: Dim) -> bool:
        difference = b - a
        return self._known.resolved.is_non_negative(
            self.resolve(difference)
        ) or self._known.symbolic.is_non_negative(difference)

    def bounds(self, dim: Dim) -> tuple[int | None, int | None]:
        """The least and the greatest value that are known, both included."""
        interval = self._known.symbolic.interval(dim)
        interval &= self._known.resolved.interval(self.resolve(dim))
        low, high = interval.low, interval.high
        return (
            low if isinstance(low, int) else None,
            high if isinstance(high, int) else None,
        )

    def check(self) -> None:
        """Raises FactError naming facts found to contradict each other."""
        if (contradiction := self._known.contradiction) is not None:
            raise FactError(str(contradiction), contradiction.facts)
