"""
What follows from divisibilities and inequalities between dims.

A divisibility x | n of a name is used up by writing n = x * q everywhere, with a new
name q. Folding of dims does the rest: `z * n floordiv x` is `z * q`, `n mod x` is 0.
Inequalities are dims known not to be negative; another dim is shown to be so by taking
multiples of them away until its bounds tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from cleave.dialects.dim_bounds import Interval, bounds_of_names, interval_of
from cleave.dialects.dims import (
    Atom,
    Call,
    Dim,
    Term,
    atom_dim,
    call,
    floordiv,
    map_atoms,
    mod,
    names_of,
    substitute,
    terms_of,
)

# What one proof may try before it is given up, so that it takes milliseconds.
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class _Multiple:
    """`dividend` is `divisor` times `quotient`, a new name or a `floordiv`."""

    dividend: Dim
    divisor: Dim
    quotient: Dim


class Proofs:
    """
    Proves from divisibilities x | y, given as pairs (x, y), from dims that are not
    negative, from dims that are 0, and from bounds of names (others are non-negative).
    What it does not prove may hold all the same.
    """

    def __init__(
        self,
        divisibilities: Iterable[tuple[Dim, Dim]],
        non_negatives: Iterable[Dim],
        zeros: Iterable[Dim],
        bounds: Mapping[str, Interval],
    ):
        self._written: dict[str, _Multiple] = {}
        self._multiples: list[_Multiple] = []
        self._rewritten: dict[Dim, Dim] = {}
        self._lows: dict[Dim, float] = {}
        self._zeros: list[Dim] = []

        known = [*non_negatives, *(e for z in zeros for e in (z, -z))]
        self.bounds = bounds_of_names(known, bounds)
        for divisor, dividend in divisibilities:
            if interval_of(dividend, self.bounds).low >= 1:
                known.append(dividend - divisor)
            self._use_divisibility(divisor, dividend)
        for name, multiple in self._written.items():
            difference = atom_dim(name) - multiple.divisor * multiple.quotient
            known += difference, -difference
        expanded = dict.fromkeys(self._expand(dim) for dim in known)
        self._non_negatives = [dim for dim in expanded if not isinstance(dim, int)]
        self.bounds = bounds_of_names((*known, *expanded), bounds)
        self._zeros = [self._rewrite(self._expand(zero)) for zero in zeros]

    def _use_divisibility(self, divisor: Dim, dividend: Dim) -> None:
        divisor, dividend = self._expand(divisor), self._expand(dividend)
        if divisor == 0:
            return
        # Common factors go: of 128 | s * K with s = 2 * t is left 64 | t * K.
        match terms_of(mod(dividend, divisor)):
            case (Term(factors=((Call("mod", (dividend, divisor)), 1),)),):
                pass
            case (_, *_):
                pass
            case _:
                return
        match terms_of(dividend):
            case (Term(1, ((str(name), 1),)),) if (
                name not in names_of(divisor)
                and interval_of(divisor, self.bounds).low >= 0
            ):
                quotient = atom_dim(f"{name} floordiv {divisor}")
                self._written[name] = _Multiple(dividend, divisor, quotient)
            case _:
                quotient = floordiv(dividend, divisor)
                self._multiples.append(_Multiple(dividend, divisor, quotient))

    # Answers

    def simplify(self, dim: Dim) -> Dim:
        """An equal dim with calls folded that the facts decide."""
        return self._simpler(map_atoms(dim, self._simplify_atom))

    def is_zero(self, dim: Dim) -> bool:
        dim = self._rewrite(self._expand(dim))
        if dim == 0 or any(zero != 0 and mod(dim, zero) == 0 for zero in self._zeros):
            return True
        return self.interval(dim) == Interval(0, 0)

    def divides(self, divisor: Dim, dividend: Dim) -> bool:
        dividend = self._rewrite(self._expand(dividend))
        divisor = self._rewrite(self._expand(divisor))
        return dividend == 0 or (divisor != 0 and self._divides(divisor, dividend))

    def is_non_negative(self, dim: Dim) -> bool:
        return self._search(self._rewrite(self._expand(dim)), set())

    def interval(self, dim: Dim) -> Interval:
        """Bounds of the dim, by whatever way of writing it is known here."""
        found = interval_of(dim, self.bounds)
        if self._written:
            expanded = self._expand(dim)
            found &= interval_of(expanded, self.bounds)
            found &= interval_of(self._collapse(expanded), self.bounds)
        return found

    def is_contradictory(self) -> bool:
        """True if it is proved that nothing satisfies all that is given."""
        return any(interval.is_empty for interval in self.bounds.values()) or any(
            self.is_non_negative(-1 - dim) for dim in self._non_negatives
        )

    # Rewriting

    def _simplify_atom(self, atom: Atom) -> Dim:
        if isinstance(atom, str):
            return atom_dim(atom)
        return self._simpler(call(atom.kind, tuple(map(self.simplify, atom.args))))

    def _simpler(self, dim: Dim) -> Dim:
        # Taking a division apart helps only where its parts fold.
        folded = self._collapse(self._rewrite(self._expand(dim)))
        return folded if _count_calls(folded) <= _count_calls(dim) else dim

    def _expand(self, dim: Dim) -> Dim:
        """Writes names as multiples of their divisors."""
        for name, multiple in self._written.items():
            dim = substitute(dim, {name: multiple.divisor * multiple.quotient})
        return dim

    def _collapse(self, dim: Dim) -> Dim:
        """Undoes `_expand`."""
        for multiple in reversed(self._written.values()):
            dim = _gather(dim, multiple)
            (name,) = names_of(multiple.quotient)
            value = floordiv(multiple.dividend, multiple.divisor)
            dim = substitute(dim, {name: value})
        return dim

    def _rewrite(self, dim: Dim) -> Dim:
        """Folds calls of an expanded dim by divisibilities and inequalities."""
        if isinstance(dim, int):
            return dim
        if dim not in self._rewritten:
            rewritten = map_atoms(dim, self._rewrite_atom)
            for multiple in self._multiples:
                rewritten = _gather(rewritten, multiple)
            self._rewritten[dim] = rewritten
        return self._rewritten[dim]

    def _rewrite_atom(self, atom: Atom) -> Dim:
        if isinstance(atom, str):
            return atom_dim(atom)
        args = tuple(self._rewrite(arg) for arg in atom.args)
        if atom.kind in ("min", "max"):
            return call(atom.kind, tuple(self._decisive(atom.kind == "min", args)))
        dividend, divisor = args
        whole: Dim = 0
        rest: Dim = 0
        for term in terms_of(dividend):
            quotient = self._quotient(divisor, term.dim)
            if quotient is None:
                rest = rest + term.dim
            else:
                whole = whole + quotient
        if atom.kind == "mod":
            return rest if self._is_within(0, rest, divisor - 1) else mod(rest, divisor)
        if atom.kind == "floordiv" and self._is_within(0, rest, divisor - 1):
            return whole
        if atom.kind == "ceildiv" and self._is_within(1, rest, divisor):
            return whole + 1
        return whole + call(atom.kind, (rest, divisor))

    def _is_within(self, low: Dim, dim: Dim, high: Dim) -> bool:
        return self.is_non_negative(dim - low) and self.is_non_negative(high - dim)

    def _decisive(self, is_minimum: bool, args: tuple[Dim, ...]) -> list[Dim]:
        """The arguments that no other one makes superfluous."""
        kept = list(args)
        for arg in args:
            for other in kept:
                difference = arg - other if is_minimum else other - arg
                if other != arg and self.is_non_negative(difference):
                    kept.remove(arg)
                    break
        return kept

    # Divisibility

    def _quotient(self, divisor: Dim, dividend: Dim, depth: int = 3) -> Dim | None:
        if mod(dividend, divisor) == 0:
            return floordiv(dividend, divisor)
        for multiple in self._multiples if depth else ():
            if mod(dividend, multiple.dividend) != 0:
                continue
            others = floordiv(dividend, multiple.dividend) * multiple.divisor
            if others != dividend and (
                (quotient := self._quotient(divisor, others, depth - 1)) is not None
            ):
                return quotient * multiple.quotient
        return None

    def _divides(self, divisor: Dim, dividend: Dim) -> bool:
        return self._quotient(divisor, dividend) is not None or all(
            self._divides_term(divisor, term) for term in terms_of(dividend)
        )

    def _divides_term(self, divisor: Dim, term: Term) -> bool:
        if self._quotient(divisor, term.dim) is not None:
            return True
        # A minimum is one of its arguments, a remainder a sum of multiples of both.
        return any(
            isinstance(atom, Call)
            and atom.kind in ("min", "max", "mod")
            and all(
                self._divides(divisor, _replace(term.dim, atom, arg))
                for arg in atom.args
            )
            for atom, _ in term.factors
        )

    # Inequalities

    def _search(self, dim: Dim, tried: set[Dim]) -> bool:
        if self._low(dim) >= 0:
            return True
        if isinstance(dim, int) or dim in tried or len(tried) >= _STEPS:
            return False
        tried.add(dim)
        return any(self._search(less, tried) for less in self._lessened(dim)) or any(
            all(self._search(_replace(dim, atom, arg), tried) for arg in atom.args)
            for atom in _calls(dim)
            if atom.kind in ("min", "max")
        )

    def _low(self, dim: Dim) -> float:
        if dim not in self._lows:
            self._lows[dim] = self.interval(dim).low
        return self._lows[dim]

    def _lessened(self, dim: Dim) -> Iterator[Dim]:
        """
        Positive multiples of the dim less something known not to be negative, so that a
        negative term cancels.
        """
        terms = [t for t in terms_of(dim) if t.coefficient < 0 and t.factors]
        # A term without a lower bound must cancel sooner or later: no choice to try.
        endless = [t for t in terms if self._low(t.dim) == -inf]
        known = [*self._non_negatives, *self._known_of_calls(dim)]
        for term in endless[:1] or terms:
            product = Term(1, term.factors).dim
            for other in known:
                for cancelled in terms_of(other):
                    if cancelled.coefficient > 0 or not cancelled.factors:
                        continue
                    part = Term(1, cancelled.factors).dim
                    if mod(product, part) != 0:
                        continue
                    scale = floordiv(product, part)
                    # Higher degrees would only come back again, and higher still.
                    is_lower = _degree(scale * other) <= _degree(dim)
                    if is_lower and self._low(scale) >= 0:
                        yield (
                            dim * -cancelled.coefficient
                            + scale * other * term.coefficient
                        )

    def _known_of_calls(self, dim: Dim) -> Iterator[Dim]:
        """Dims that are not negative by the meaning of the calls in this one."""
        for atom in _calls(dim):
            value = atom_dim(atom)
            if atom.kind == "min":
                yield from (arg - value for arg in atom.args)
            elif atom.kind == "max":
                yield from (value - arg for arg in atom.args)
            else:
                dividend, divisor = atom.args
                if self.interval(divisor).low < 1:
                    continue
                if atom.kind == "floordiv":
                    yield dividend - divisor * value
                    yield divisor * value - dividend + divisor - 1
                elif atom.kind == "ceildiv":
                    yield divisor * value - dividend
                    yield dividend + divisor - 1 - divisor * value
                else:
                    yield divisor - 1 - value
                    if self.interval(dividend).low >= 0:
                        yield dividend - value


def _count_calls(dim: Dim) -> int:
    return sum(
        1 + sum(map(_count_calls, atom.args))
        for term in terms_of(dim)
        for atom, _ in term.factors
        if isinstance(atom, Call)
    )


def _degree(dim: Dim) -> int:
    return max((term.degree for term in terms_of(dim)), default=0)


def _calls(dim: Dim) -> list[Call]:
    """The calls in the dim that are not within calls."""
    atoms = (atom for term in terms_of(dim) for atom, _ in term.factors)
    return [atom for atom in dict.fromkeys(atoms) if isinstance(atom, Call)]


def _replace(dim: Dim, atom: Atom, value: Dim) -> Dim:
    return map_atoms(dim, lambda a: value if a == atom else atom_dim(a))


def _gather(dim: Dim, multiple: _Multiple) -> Dim:
    """Writes divisor * quotient as the dividend, where one term holds both."""
    product = multiple.divisor * multiple.quotient
    if isinstance(product, int) or product == multiple.dividend:
        return dim

    def gather_in_calls(atom: Atom) -> Dim:
        if isinstance(atom, str):
            return atom_dim(atom)
        return call(atom.kind, tuple(_gather(arg, multiple) for arg in atom.args))

    total: Dim = 0
    for term in terms_of(map_atoms(dim, gather_in_calls)):
        part = term.dim
        while mod(part, product) == 0:
            part = floordiv(part, product) * multiple.dividend
        total = total + part
    return total
