"""
One declared fact about dims, its text, and the bindings that `=` facts amount to.

    fact ::= dim (`|` | `=` | `>=` | `<=`) dim

Imported through `cleave.dialects.facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from cleave.dialects.dim_structure import name_of
from cleave.dialects.dims import (
    Dim,
    DimTokens,
    Term,
    TextTokens,
    names_of,
    parse_dim_tokens,
    substitute,
    terms_of,
)

Relation: TypeAlias = Literal["|", "=", ">=", "<="]


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation that holds: `s | K` (s divides K), `M = 4096`, `M >= 1`, `M <= L`."""

    lhs: Dim
    relation: Relation
    rhs: Dim

    @property
    def names(self) -> frozenset[str]:
        return names_of(self.lhs) | names_of(self.rhs)

    def substitute(self, values: Mapping[str, Dim]) -> Fact:
        lhs, rhs = substitute(self.lhs, values), substitute(self.rhs, values)
        return Fact(lhs, self.relation, rhs)

    def __str__(self) -> str:
        return f"{self.lhs} {self.relation} {self.rhs}"


class FactError(ValueError):
    """Facts that contradict each other; the message names them, as does `facts`."""

    def __init__(self, message: str, facts: Iterable[Fact]):
        super().__init__(message)
        self.facts = tuple(facts)


# Text

_COMPARISONS: Final[tuple[tuple[str, Relation], ...]] = ((">", ">="), ("<", "<="))


def parse_fact_tokens(tokens: DimTokens) -> Fact:
    """The fact at the front of the stream."""
    lhs = parse_dim_tokens(tokens)
    relation = _parse_relation(tokens)
    return Fact(lhs, relation, parse_dim_tokens(tokens))


def _parse_relation(tokens: DimTokens) -> Relation:
    if tokens.optional_punctuation("|"):
        return "|"
    if tokens.optional_punctuation("="):
        return "="
    for first, relation in _COMPARISONS:
        if tokens.optional_punctuation(first) and tokens.optional_punctuation("="):
            return relation
    tokens.error("expected '|', '=', '>=' or '<='")


def parse_fact_text(text: str) -> Fact:
    """The fact of a text. Raises DimSyntaxError, which names the column."""
    tokens = TextTokens(text)
    fact = parse_fact_tokens(tokens)
    tokens.end()
    return fact


# Bindings


@dataclass
class Bindings:
    """
    `=` facts solved for names, one after the other, as equations are.

    A name is bound where it stands alone on one side; values hold no bound names.
    """

    values: dict[str, Dim] = field(default_factory=dict[str, Dim])
    reasons: dict[str, tuple[Fact, ...]] = field(
        default_factory=dict[str, tuple[Fact, ...]]
    )

    @staticmethod
    def of(facts: Iterable[Fact]) -> Bindings:
        """Raises FactError for a fact that makes a divisor 0."""
        bindings = Bindings()
        pending = [fact for fact in facts if fact.relation == "="]
        # Of `K = 2 * M` and `K = 4096` the second must give K its value.
        pending.sort(key=lambda fact: all(map(names_of, (fact.lhs, fact.rhs))))
        # A fact may bind a name only when another fact has bound the others.
        while used := [fact for fact in pending if bindings._use(fact)]:
            pending = [fact for fact in pending if fact not in used]
        return bindings

    def reasons_for(self, names: Iterable[str]) -> tuple[Fact, ...]:
        """The facts that give these names their values, each once."""
        return tuple(
            dict.fromkeys(f for n in sorted(names) for f in self.reasons.get(n, ()))
        )

    def _use(self, fact: Fact) -> bool:
        """Binds a name if the fact allows it; True if nothing is left of the fact."""
        try:
            known = fact.substitute(self.values)
            solution = _solve(known)
            if solution is not None:
                self._bind(*solution, (fact, *self.reasons_for(fact.names)))
        except ZeroDivisionError as error:
            raise FactError(f"{error}, because of {fact}", (fact,)) from error
        return solution is not None or known.lhs == known.rhs

    def _bind(self, name: str, value: Dim, reasons: tuple[Fact, ...]) -> None:
        for other, old in self.values.items():
            if name in names_of(old):
                self.values[other] = substitute(old, {name: value})
                self.reasons[other] += reasons
        self.values[name], self.reasons[name] = value, reasons


def _solve(equation: Fact) -> tuple[str, Dim] | None:
    """A name and the value that the equation gives it."""
    lhs, rhs = equation.lhs, equation.rhs
    for side, value in ((lhs, rhs), (rhs, lhs)):
        name = name_of(side)
        if name is not None and name not in names_of(value):
            return name, value
    match terms_of(lhs - rhs):
        case (Term(scale, ((str(name), 1),)), Term(constant, ())) | (
            Term(constant, ()),
            Term(scale, ((str(name), 1),)),
        ) if constant % scale == 0:
            return name, -constant // scale
        case _:
            return None
