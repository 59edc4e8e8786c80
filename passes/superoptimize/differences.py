"""What distinguishes a candidate from its original, in words where there are words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator


def operator_counts(graph: GraphOp) -> Counter[str]:
    """How often each operator occurs. Views and numbers cost nothing: left out."""
    return Counter(_word(op) for op in _computing(graph))


def differences(original: GraphOp, candidate: GraphOp) -> Iterator[str]:
    """
    What was split, what changed places, and what is there more or less often.

    Operators of one kind that the candidate does not have under their old name are
    taken to be those of the original in order; two of them that were before and behind
    each other, and are now the other way round, have changed places.
    """
    declared = set(original.symbol_names)
    for fact in candidate.facts:
        if fact.relation == "|" and str(fact.lhs) not in declared:
            yield f"splits {fact.rhs} into {fact.lhs} parts"
    yield from _moves(original, candidate)
    before, after = operator_counts(original), operator_counts(candidate)
    if more := after - before:
        yield "adds " + _listed(more)
    if less := before - after:
        yield "needs no " + _listed(less)


def _moves(original: GraphOp, candidate: GraphOp) -> Iterator[str]:
    pairs = list(_counterparts(original, candidate))
    above_before, above_after = _ancestors(original), _ancestors(candidate)
    for first, first_now in pairs:
        for second, second_now in pairs:
            was_before = first.results[0] in above_before[second.results[0]]
            is_behind = second_now.results[0] in above_after[first_now.results[0]]
            if was_before and is_behind:
                yield f"{_named(first)} behind {_named(second)}"


def _counterparts(
    original: GraphOp, candidate: GraphOp
) -> Iterator[tuple[Operator, Operator]]:
    """
    Operators of the original with those of the candidate that stand for them: of the
    same name, and for those that have lost it, of one kind, if equally many are left.
    """
    pairs, old, new = _by_name(original, candidate)
    yield from pairs
    for word, operators in old.items():
        if len(operators) == len(new[word]):
            yield from zip(operators, new[word], strict=True)


def _by_name(
    original: GraphOp, candidate: GraphOp
) -> tuple[
    list[tuple[Operator, Operator]],
    dict[str, list[Operator]],
    dict[str, list[Operator]],
]:
    """The operators with a common name, and the others of either graph by kind."""
    counts = set(candidate.symbol_names) - set(original.symbol_names)
    named = {op.results[0].name_hint: op for op in _computing(candidate)}
    pairs: list[tuple[Operator, Operator]] = []
    old: dict[str, list[Operator]] = defaultdict(list)
    new: dict[str, list[Operator]] = defaultdict(list)
    for op in _computing(original):
        name = op.results[0].name_hint
        if name is not None and name in named:
            pairs.append((op, named[name]))
        else:
            old[_word(op)].append(op)
    kept = {op for _, op in pairs}
    for op in _computing(candidate):
        adds_up_parts = any(str(dim) in counts for dim in op.expression.reduced)
        if op not in kept and not adds_up_parts:
            new[_word(op)].append(op)
    return pairs, old, new


def _ancestors(graph: GraphOp) -> dict[SSAValue, set[SSAValue]]:
    """For each value all values that it is computed from."""
    ancestors: dict[SSAValue, set[SSAValue]] = defaultdict(set)
    for op in graph.operators:
        for operand in op.operands:
            ancestors[op.results[0]] |= {operand} | ancestors[operand]
    return ancestors


def _computing(graph: GraphOp) -> Iterator[Operator]:
    return (
        op
        for op in graph.operators
        if op.operands and not op.IS_VIEW and not op.ONLY_ROUNDS
    )


def _word(op: Operator) -> str:
    return op.name.partition(".")[2]


def _named(op: Operator) -> str:
    name = op.results[0].name_hint
    return f"{_word(op)} %{name}" if name else _word(op)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(
        word if number == 1 else f"{number} {word}" for word, number in counts.items()
    )
