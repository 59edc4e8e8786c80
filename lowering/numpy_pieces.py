"""Execution of the pieces of a graph in NumPy, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.numpy_algebra import (
    Array,
    ExecutionError,
    Precision,
    bound_sizes,
    prepare_input,
    results_of,
)
from cleave.passes.partitioning.piece import Earlier, Input, piece_of


def execute_pieces(
    pieces: Sequence[GraphOp],
    inputs: Sequence[Array],
    sizes: Mapping[str, int] | None = None,
    precision: Precision = "float64",
) -> list[Array]:
    """
    The outputs of the graph of which `pieces` are all pieces, in order, for its inputs.

    What one piece passes on to another is rounded to the type that it declares for it,
    but nothing is in "float64". Raises ExecutionError as `execute_graph` does, and
    for a graph that is no piece.
    """
    passed_on: list[list[Array]] = []
    outputs: dict[int, Array] = {}
    for graph in pieces:
        if (piece := piece_of(graph)) is None:
            raise ExecutionError(f"@{graph.graph_name} is no piece of a graph")
        bound = bound_sizes(graph, sizes)
        arguments: list[Array] = []
        for operand, type_ in zip(piece.operands, graph.input_types, strict=True):
            match operand:
                case Input(position):
                    array = inputs[position]
                    name = str(operand)
                    arguments.append(
                        prepare_input(name, array, type_, bound, precision)
                    )
                case Earlier(number, result):
                    arguments.append(passed_on[number][result])
        results = results_of(graph, arguments, bound, precision)
        passed_on.append(results)
        for output, array in zip(piece.results, results, strict=True):
            if output is not None:
                outputs[output] = array
    return [outputs[position] for position in sorted(outputs)]
