"""What proofs ask of the structure of dims: their terms, calls and factors."""

from __future__ import annotations

from dataclasses import dataclass

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
    terms_of,
)


def calls_of(dim: Dim) -> list[Call]:
    """The calls in the dim that are not within calls."""
    atoms = (atom for term in terms_of(dim) for atom, _ in term.factors)
    return [atom for atom in dict.fromkeys(atoms) if isinstance(atom, Call)]


def count_calls(dim: Dim) -> int:
    """How often calls are written in the text of the dim, powers counting once."""
    return sum(
        1 + sum(map(count_calls, atom.args))
        for term in terms_of(dim)
        for atom, _ in term.factors
        if isinstance(atom, Call)
    )


def degree_of(dim: Dim) -> int:
    return max((term.degree for term in terms_of(dim)), default=0)


def name_of(dim: Dim) -> str | None:
    """The name that the dim is, if it is one alone."""
    match terms_of(dim):
        case (Term(1, ((str(name), 1),)),):
            return name
        case _:
            return None


def quotient_of(product: Dim, factor: Dim) -> Dim:
    """The product without the factor, or 0 if it does not hold it."""
    return floordiv(product, factor) if mod(product, factor) == 0 else 0


def replace_atom(dim: Dim, atom: Atom, value: Dim) -> Dim:
    """The dim with another value for a name or call, where it is not within a call."""
    return map_atoms(dim, lambda a: value if a == atom else atom_dim(a))


@dataclass(frozen=True, slots=True)
class Multiple:
    """`dividend` is `divisor` times `quotient`, a new name or a `floordiv`."""

    dividend: Dim
    divisor: Dim
    quotient: Dim

    @property
    def product(self) -> Dim:
        return self.divisor * self.quotient

    def gather(self, dim: Dim) -> Dim:
        """Writes the dividend for divisor * quotient, where one term holds both."""
        product = self.product
        if isinstance(product, int) or product == self.dividend:
            return dim
        total: Dim = 0
        for term in terms_of(map_atoms(dim, self._gather_within)):
            part = term.dim
            while mod(part, product) == 0:
                part = floordiv(part, product) * self.dividend
            total = total + part
        return total

    def _gather_within(self, atom: Atom) -> Dim:
        if isinstance(atom, str):
            return atom_dim(atom)
        return call(atom.kind, tuple(map(self.gather, atom.args)))
