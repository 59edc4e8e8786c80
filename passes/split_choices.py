"""
The attribute `choices` of a graph: values that its symbols without one may have.

    algebra.graph @rowsum_2 [M, K, s] where [M = 8, K = 12, s | K] ...
        attributes {choices = {s = array<i64: 2, 3, 4, 6>}} { ... }

Symbols are split counts, and chunks of parts where these do not divide; a choice takes
for all of them the values at one position. What goes for every count is said and done
once that way: a graph is cut and scheduled once, and its counts are one more size that
a tile configuration has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import Dim, evaluate, symbol
from cleave.dialects.facts import Fact, FactError
from cleave.dialects.tensor import FactAttr
from cleave.passes.partitioning.piece import KERNEL, piece_of
from cleave.passes.scheduling.tiles import fresh_name
from cleave.passes.uneven_splits import UnevenSplit, chunk_of, with_chunks

CHOICES = "choices"
"""The name of the attribute."""


def choices_attribute(choices: Sequence[Mapping[str, int]]) -> DictionaryAttr:
    """The attribute for choices, which are all of the same symbols."""
    return DictionaryAttr(
        {
            name: DenseArrayBase.from_list(i64, [choice[name] for choice in choices])
            for name in choices[0]
        }
    )


def choices_of(graph: GraphOp) -> list[dict[str, int]]:
    """
    The choices that a graph leaves open; none if it has no such attribute.

    Raises ValueError for an attribute that does not read as one.
    """
    if (attribute := graph.attributes.get(CHOICES)) is None:
        return []
    try:
        columns = {
            name: cast(DenseArrayBase[IntegerType], values).get_values()
            for name, values in cast(DictionaryAttr, attribute).data.items()
        }
        return [
            {name: int(n) for name, n in zip(columns, row, strict=True)}
            for row in zip(*columns.values(), strict=True)
        ]
    except (AttributeError, ValueError) as error:
        raise ValueError(
            f"'{graph.name}' op: @{graph.graph_name} has {CHOICES} = {attribute}, but "
            "these are lists of integers, one a symbol and all equally long"
        ) from error


def name_with(name: str, choice: Mapping[str, int]) -> str:
    """
    The name of a graph with a choice made, such as `scores_2_s4`; a symbol that ends in
    a digit is told apart from its value.
    """
    parts = (f"{s}_{n}" if s[-1].isdigit() else f"{s}{n}" for s, n in choice.items())
    return "_".join([name, *parts])


def chosen(graph: GraphOp, choice: Mapping[str, int]) -> GraphOp:
    """A copy of a graph, or of a piece of one, with a choice made."""
    copy = bound(graph, name_with(graph.graph_name, choice), choice)
    copy.attributes.pop(CHOICES, None)
    if (piece := piece_of(copy)) is not None:
        of = name_with(piece.of, choice)
        copy.attributes[KERNEL] = replace(piece, of=of).attribute
    return copy


def bound(graph: GraphOp, name: str, sizes: Mapping[str, int]) -> GraphOp:
    """
    A copy of a graph, of this name, with symbols bound to sizes.

    Raises PassFailedException where that contradicts a fact.
    """
    facts = graph.facts
    new = [
        Fact(symbol(s), "=", size)
        for s, size in sizes.items()
        if facts.resolve(symbol(s)) != size
    ]
    try:
        facts.extend(*new).check()
    except FactError as error:
        raise PassFailedException(f"graph @{graph.graph_name}: {error}") from error
    copy = graph.clone()
    copy.properties["sym_name"] = StringAttr(name)
    copy.properties["where"] = ArrayAttr([*graph.where, *map(FactAttr, new)])
    return copy


def split_counts(graph: GraphOp) -> dict[str, Dim]:
    """The counts by which a graph splits, with the dims that they divide."""
    return {
        str(fact.lhs): fact.rhs
        for fact in graph.facts
        if fact.relation == "|" and str(fact.lhs) in graph.symbol_names
    }


@dataclass(frozen=True)
class SplitForm:
    """A graph for counts that divide the same of the dims that it splits."""

    graph: GraphOp
    """In chunks where they do not divide."""
    uneven: Sequence[UnevenSplit]
    choices: Sequence[dict[str, int]]
    """Counts, and then chunks."""

    @classmethod
    def of(
        cls, graph: GraphOp, choices: Sequence[dict[str, int]], sizes: dict[str, int]
    ) -> SplitForm:
        """Raises VerifyException if the graph has no form for these counts."""
        splits: list[UnevenSplit] = []
        dims = split_counts(graph)
        for count in uneven_counts(graph, sizes | choices[0]):
            dim = dims[count]
            chunks = [_chunk(count, dim, sizes | choice) for choice in choices]
            if str(dim) not in graph.symbol_names:
                raise VerifyException(f"count {count} does not divide {dim}, no symbol")
            split = UnevenSplit(str(dim), count, fresh_name("C", graph.symbol_names))
            choices = [
                choice | {split.chunk: chunk}
                for choice, chunk in zip(choices, chunks, strict=True)
            ]
            splits.append(split)
            graph = with_chunks(graph, split)
        return cls(graph, splits, choices)

    def together(self, name: str, sizes: dict[str, int]) -> GraphOp:
        """One graph for all choices."""
        graph = bound(self.graph, name, sizes)
        holds = [
            Fact(symbol(split.count) * symbol(split.chunk), ">=", symbol(split.extent))
            for split in self.uneven
        ]
        graph.where = ArrayAttr([*graph.where, *map(FactAttr, holds)])
        if self.choices[0]:
            graph.attributes[CHOICES] = choices_attribute(self.choices)
        return graph


def uneven_counts(graph: GraphOp, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The split counts of a graph that do not divide their dims."""
    counts = split_counts(graph).items()
    return tuple(s for s, dim in counts if evaluate(dim, sizes) % sizes[s])


def _chunk(count: str, dim: Dim, sizes: Mapping[str, int]) -> int:
    extent, parts = evaluate(dim, sizes), sizes[count]
    if (chunk := chunk_of(extent, parts)) is None:
        raise VerifyException(
            f"{parts} parts of {dim}, which is {extent}, leave one empty"
        )
    return chunk
