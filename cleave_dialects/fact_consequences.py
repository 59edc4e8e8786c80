"""What a list of facts amounts to: bindings, proofs, and contradictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from math import inf
from typing import TypeAlias

from cleave.dialects.dim_bounds import Interval, interval_of
from cleave.dialects.dim_proofs import Proofs
from cleave.dialects.dims import Dim, mod, substitute, symbol
from cleave.dialects.fact import Bindings, Fact, FactError

Range: TypeAlias = tuple[Dim, Dim]
"""The values of an iterator: from the first dim to the second, which it stays below."""

_SIZE = Interval(1, inf)


@lru_cache(1 << 7)
def consequences_of(
    facts: tuple[Fact, ...],
    sizes: frozenset[str],
    ranges: tuple[tuple[str, Range], ...],
) -> Consequences:
    """Shared between equal lists of facts: verifiers ask for one over and over."""
    return Consequences(facts, sizes, ranges)


class Consequences:
    """Of facts, of symbols that are sizes (at least 1), and of ranges of iterators."""

    def __init__(
        self,
        facts: tuple[Fact, ...],
        sizes: frozenset[str],
        ranges: tuple[tuple[str, Range], ...],
    ):
        self._facts = facts
        self._sizes = sizes
        self._ranges = ranges

    @cached_property
    def bindings(self) -> Bindings:
        return Bindings.of(self._facts)

    @cached_property
    def symbolic(self) -> Proofs:
        """Proves with bound symbols in place: `s | K` is of use where K = 4096."""
        return self._proofs(self._facts, {})

    @cached_property
    def resolved(self) -> Proofs:
        """Proves about dims whose bound symbols are replaced."""
        values = self.bindings.values
        return self._proofs(self._facts, values) if values else self.symbolic

    def _proofs(self, facts: tuple[Fact, ...], values: dict[str, Dim]) -> Proofs:
        known = [fact.substitute(values) for fact in facts]
        at_least_0 = [f.lhs - f.rhs for f in known if f.relation == ">="]
        at_least_0 += [f.rhs - f.lhs for f in known if f.relation == "<="]
        for name, (first, end) in self._ranges:
            iterator = values.get(name, symbol(name))
            at_least_0.append(iterator - substitute(first, values))
            at_least_0.append(substitute(end, values) - 1 - iterator)
        at_least_0 += [v - 1 for name, v in values.items() if name in self._sizes]
        return Proofs(
            [(f.lhs, f.rhs) for f in known if f.relation == "|"],
            at_least_0,
            [f.lhs - f.rhs for f in known if f.relation == "="],
            {name: _SIZE for name in self._sizes},
        )

    # Contradictions

    @cached_property
    def contradiction(self) -> FactError | None:
        """The first contradiction found; None proves nothing."""
        try:
            return next(self._contradictions(), None)
        except FactError as error:
            return error

    def _contradictions(self) -> Iterator[FactError]:
        bindings = self.bindings
        for name in sorted(self._sizes & bindings.values.keys()):
            if self._interval(bindings.values[name]).high < 1:
                reasons = bindings.reasons[name]
                yield FactError(
                    f"{_listed(reasons)}, but {name} is a size, at least 1", reasons
                )
        for fact in self._facts:
            reasons = [f for f in bindings.reasons_for(fact.names) if f != fact]
            try:
                known = fact.substitute(bindings.values)
            except ZeroDivisionError as error:
                yield FactError(f"{error}, in {fact}", (fact, *reasons))
            else:
                if self._is_false(known):
                    yield FactError(_contradiction(fact, reasons), (fact, *reasons))
        if self.resolved.is_contradictory():
            yield self._contradiction_of_few()

    def _interval(self, dim: Dim) -> Interval:
        return interval_of(dim, {name: _SIZE for name in self._sizes})

    def _is_false(self, fact: Fact) -> bool:
        """True for a fact that holds for no values of its names."""
        match fact.relation:
            case "|" if fact.lhs == 0:
                values = self._interval(fact.rhs)
                return values.low > 0 or values.high < 0
            case "|":
                remainder = self._interval(mod(fact.rhs, fact.lhs))
                return remainder.low > 0 or remainder.high < 0
            case "=":
                difference = self._interval(fact.lhs - fact.rhs)
                return difference.low > 0 or difference.high < 0
            case ">=":
                return self._interval(fact.lhs - fact.rhs).high < 0
            case "<=":
                return self._interval(fact.rhs - fact.lhs).high < 0

    def _is_contradictory(self, facts: tuple[Fact, ...]) -> bool:
        return Consequences(
            facts, self._sizes, self._ranges
        ).resolved.is_contradictory()

    def _contradiction_of_few(self) -> FactError:
        """Names as few facts as contradict each other: two, mostly."""
        few = next(
            few
            for count in range(len(self._facts) + 1)
            for few in combinations(self._facts, count)
            if self._is_contradictory(few)
        )
        if not few:
            return FactError("the ranges of iterators contradict each other", ())
        *others, fact = few
        return FactError(_contradiction(fact, others), few)


def _contradiction(fact: Fact, others: Sequence[Fact]) -> str:
    if not others:
        return f"no sizes satisfy {fact}; a size is at least 1"
    return f"{fact} contradicts {_listed(others)}"


def _listed(facts: Sequence[Fact]) -> str:
    *others, last = map(str, facts)
    return f"{', '.join(others)} and {last}" if others else last
