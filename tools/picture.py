"""Pictures of graphs, by Graphviz."""

# The library has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path
from shutil import which
from typing import cast

from graphviz import Digraph
from xdsl.ir import SSAValue

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType


def draw(graph: GraphOp) -> Digraph:
    """A node for each input, operator and output, an edge for each operand."""
    picture = Digraph(graph.graph_name, node_attr={"fontname": "sans-serif"})
    nodes: dict[SSAValue, str] = {}
    for argument in graph.inputs:
        nodes[argument] = f"v{len(nodes)}"
        label = f"{argument.name_hint or ''}\\n{_shape(argument)}"
        picture.node(nodes[argument], label, shape="box", style="filled")
    for op in graph.operators:
        (result,) = op.results
        nodes[result] = f"v{len(nodes)}"
        shape = "plaintext" if op.IS_VIEW or not op.operands else "ellipse"
        label = f"{_text(op)}\\n{_shape(result)}"
        picture.node(nodes[result], label, shape=shape)
        for operand in op.operands:
            picture.edge(nodes[operand], nodes[result])
    for position, value in enumerate(graph.return_op.values):
        picture.node(f"o{position}", f"output {position}", shape="box")
        picture.edge(nodes[value], f"o{position}")
    return picture


def write_picture(graph: GraphOp, path: Path) -> list[Path]:
    """
    Write a `.dot` file and, if Graphviz's `dot` is installed, an `.svg` beside it.
    Returns the files; raises OSError if one cannot be written.
    """
    picture = draw(graph)
    source = path.with_suffix(".dot")
    source.write_text(picture.source)
    if which("dot") is None:
        return [source]
    rendered = path.with_suffix(".svg")
    rendered.write_bytes(picture.pipe(format="svg"))
    return [source, rendered]


def _shape(value: SSAValue) -> str:
    return f"[{', '.join(map(str, cast(TensorType, value.type).dims))}]"


def _text(op: Operator) -> str:
    params = [
        name if value is True else f"{name} {value}"
        for name, value in op.params.items()
    ]
    return " ".join([op.name.partition(".")[2], *params])
