"""
What follows from divisibilities and inequalities between dims.

A divisibility x | n of a name is used up by writing n = x * q everywhere, with a new
name q. Folding of dims does the rest: `z * n floordiv x` is `z * q`, `n mod x` is 0.
Inequalities are dims known not to be negative; another dim is shown to be so by taking
multiples of them away until its bounds tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final

from cleave.dialects.dim_bounds import Endpoint, Interval, bounds_of_names, interval_of
from cleave.dialects.dim_structure import (
    Multiple,
    calls_of,
    count_calls,
    degree_of,
    name_of,
    quotient_of,
    replace_atom,
)
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
_STEPS: Final = 20


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
        self._written: dict[str, Multiple] = {}
        self._multiples: list[Multiple] = []
        self._rewritten: dict[Dim, Dim] = {}
        self._lows: dict[Dim, Endpoint] = {}
        self._non_negative: dict[Dim, bool] = {}
        self._zeros: list[Dim] = []

        known = [*non_negatives, *(e for z in zeros for e in (z, -z))]
        self.bounds = bounds_of_names(known, bounds)
        for divisor, dividend in divisibilities:
            if interval_of(dividend, self.bounds).low >= 1:
                known.append(dividend - divisor)
            self._use_divisibility(divisor, dividend)
        for name, multiple in self._written.items():
            difference = atom_dim(name) - multiple.product
            known += difference, -difference
        expanded = dict.fromkeys(self._expand(dim) for dim in known)
        self._non_negatives = [dim for dim in expanded if not isinstance(dim, int)]
        self.bounds = bounds_of_names((*known, *expanded), bounds)
        self._zeros = [self._rewrite(self._expand(zero)) for zero in zeros]

    def _use_divisibility(self, divisor: Dim, dividend: Dim) -> None:
        divisor, dividend = self._expand(divisor), self._expand(dividend)
        if divisor == 0 or mod(dividend, divisor) == 0:
            return
        match terms_of(mod(dividend, divisor)):
            case (Term(division=Call("mod", (a, b))),):
                # Without integer factors in common: of 128 | 6 * K is left 64 | 3 * K,
                # and so 64 | K.
                dividend, divisor = a, b
                if isinstance(divisor, int) and len(terms_of(dividend)) == 1:
                    dividend = Term(1, terms_of(dividend)[0].factors).dim
            case _:
                pass
        name = name_of(dividend)
        has_quotient = interval_of(divisor, self.bounds).low >= 0
        if name is not None and name not in names_of(divisor) and has_quotient:
            quotient = atom_dim(f"{name} floordiv {divisor}")
            self._written[name] = Multiple(dividend, divisor, quotient)
        else:
            quotient = floordiv(dividend, divisor)
            self._multiples.append(Multiple(dividend, divisor, quotient))

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
        dim = self._rewrite(self._expand(dim))
        if dim not in self._non_negative:
            self._non_negative[dim] = self._search(dim, set())
        return self._non_negative[dim]

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
        return folded if count_calls(folded) <= count_calls(dim) else dim

    def _expand(self, dim: Dim) -> Dim:
        """Writes names as multiples of their divisors."""
        for name, multiple in self._written.items():
            dim = substitute(dim, {name: multiple.product})
        return dim

    def _collapse(self, dim: Dim) -> Dim:
        """Undoes `_expand`."""
        for multiple in reversed(self._written.values()):
            dim = multiple.gather(dim)
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
                rewritten = multiple.gather(rewritten)
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
                self._divides(divisor, replace_atom(term.dim, atom, arg))
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
            all(self._search(replace_atom(dim, atom, arg), tried) for arg in atom.args)
            for atom in calls_of(dim)
            if atom.kind in ("min", "max")
        )

    def _low(self, dim: Dim) -> Endpoint:
        if dim not in self._lows:
            self._lows[dim] = self.interval(dim).low
        return self._lows[dim]

    def _lessened(self, dim: Dim) -> Iterator[Dim]:
        """
        Positive multiples of the dim less something known not to be negative, so that a
        negative term cancels.
        """
        terms = terms_of(dim)
        negative = [t for t in terms if t.coefficient < 0 and t.factors]
        # A term without a lower bound must cancel sooner or later: no choice to try.
        endless = [t for t in negative if self._low(t.dim) == -inf]
        known = [*self._non_negatives, *self._known_of_calls(dim)]
        for term in endless[:1] or negative:
            product = Term(1, term.factors).dim
            for other in terms:
                # Against -K stands s * K, which is K at least.
                ratio = quotient_of(Term(1, other.factors).dim, product)
                low = self._low(ratio)
                if other.coefficient > 0 and low > 0 and self._low(product) >= 0:
                    yield dim - other.coefficient * product * (ratio - int(low))
            for other in known:
                for cancelled in terms_of(other):
                    if cancelled.coefficient > 0 or not cancelled.factors:
                        continue
                    scale = quotient_of(product, Term(1, cancelled.factors).dim)
                    # Higher degrees would only come back again, and higher still.
                    is_lower = degree_of(scale * other) <= degree_of(dim)
                    if scale != 0 and is_lower and self._low(scale) >= 0:
                        yield (
                            dim * -cancelled.coefficient
                            + scale * other * term.coefficient
                        )

    def _known_of_calls(self, dim: Dim) -> Iterator[Dim]:
        """Dims that are not negative by the meaning of the calls in this one."""
        for atom in calls_of(dim):
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
