"""Where a graph splits dims."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp


def splits_of(graph: GraphOp) -> Iterator[tuple[SSAValue, int, int]]:
    """The result of every split, with the axis of the parts and that within a part."""
    for op in graph.operators:
        if op.IS_VIEW and not op.KEEPS_ORDER:
            for index in op.expression.operands[0]:
                if len(index) == 2:
                    parts, within = sorted(term.axis for term in index)
                    yield op.results[0], parts, within
