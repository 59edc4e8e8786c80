"""Pictures of graphs as SVG: a box an operator, with edges downwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import pairwise
from typing import cast

from xdsl.ir import SSAValue
from xdsl.printer import Printer

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import TensorType
from cleave.lowering.report_page.layered import Point, layered

CHARACTER = 6.7
"""The width of a character of the labels, in pixels."""
LINE = 15.0
PADDING = 9.0

STYLE = """\
svg.graph { --line: #7b8698; --text: #1c2330; --value: #5b6577; --box: #f2f4f8;
  --product: #d3e2fb; --reduction: #fbe3c4; --end: #d9efdf; max-width: 100%;
  height: auto }
@media (prefers-color-scheme: dark) {
  svg.graph { --line: #8792a6; --text: #e6eaf2; --value: #aab4c5; --box: #2a303c;
    --product: #24406e; --reduction: #63431c; --end: #234a31 } }
svg.graph rect { fill: var(--box); stroke: var(--line) }
svg.graph .product rect { fill: var(--product) }
svg.graph .reduction rect { fill: var(--reduction) }
svg.graph .end rect { fill: var(--end) }
svg.graph .view rect { stroke-dasharray: 4 3 }
svg.graph text { fill: var(--text); text-anchor: middle; font-size: 11px;
  font-family: ui-monospace, SFMono-Regular, Menlo, monospace }
svg.graph text.value { fill: var(--value) }
svg.graph path { fill: none; stroke: var(--line); stroke-width: 1.2 }
svg.graph marker path { fill: var(--line); stroke: none }
"""
"""CSS for light and dark surroundings."""


@dataclass(frozen=True)
class _Node:
    kind: str
    """The CSS class: what color it has."""
    title: str
    text: str
    """What it does, and under it the value."""
    tooltip: str

    @property
    def size(self) -> tuple[float, float]:
        longest = max(len(self.title), len(self.text))
        return longest * CHARACTER + 2 * PADDING, 2 * LINE + PADDING


def pictures(graph: GraphOp, pieces: Sequence[GraphOp]) -> dict[str, str]:
    """SVG of a graph, and of each graph that a kernel computes, by their titles."""
    drawn = {f"@{graph.graph_name}, as it was given": svg(graph)}
    for number, piece in enumerate(pieces):
        what = "what the kernel computes" if len(pieces) == 1 else f"kernel {number}"
        drawn[f"@{piece.graph_name}, {what}"] = svg(piece)
    return drawn


def svg(graph: GraphOp, *, alone: bool = False) -> str:
    """
    A picture of a graph. Inputs are on top, results at the bottom; a box names operator
    and parameters, and under them its value with its shape and element type.

    `alone` is for a file of its own, which brings its colors with it.
    """
    nodes: list[_Node] = []
    edges: dict[tuple[int, int], None] = {}
    numbers: dict[SSAValue, int] = {}
    for argument in graph.inputs:
        numbers[argument] = len(nodes)
        nodes.append(_Node("end", "input", _value(argument), str(argument.type)))
    for op in graph.operators:
        (result,) = op.results
        numbers[result] = len(nodes)
        for operand in op.operands:
            edges[numbers[operand], len(nodes)] = None
        nodes.append(_Node(_kind(op), operator_text(op), _value(result), str(op)))
    for position, value in enumerate(graph.return_op.values):
        edges[numbers[value], len(nodes)] = None
        type_ = graph.output_types[position]
        shape = _shape(type_)
        nodes.append(_Node("end", f"result {position}", shape, str(type_)))
    return _drawn(graph.graph_name, nodes, [*edges], alone)


def operator_text(op: Operator) -> str:
    """An operator with its parameters, as in `reduce_sum dim 1`."""
    stream = StringIO()
    for param in op.PARAMS:
        if param.name in op.properties:
            param.print(Printer(stream), op.properties[param.name])
    return f"{op.name.partition('.')[2]}{stream.getvalue()}"


def _drawn(
    name: str, nodes: Sequence[_Node], edges: Sequence[tuple[int, int]], alone: bool
) -> str:
    layout = layered([node.size for node in nodes], edges)
    width, height = round(layout.width), round(layout.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>@{escape(name)}</title>",
        *([f"<style>{STYLE}</style>"] if alone else []),
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    parts += [
        f'<path d="{_curve(path)}" marker-end="url(#head)"/>' for path in layout.paths
    ]
    for node, center in zip(nodes, layout.centers, strict=True):
        parts += _box(node, center)
    return "\n".join([*parts, "</svg>"])


def _box(node: _Node, center: Point) -> Iterable[str]:
    width, height = node.size
    x, y = center.x - width / 2, center.y - height / 2
    yield f'<g class="{node.kind}"><title>{escape(node.tooltip)}</title>'
    yield (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="5"/>'
    )
    for line, (kind, text) in enumerate((("what", node.title), ("value", node.text))):
        base = center.y - 3 + line * LINE
        yield (
            f'<text class="{kind}" x="{center.x:.1f}" y="{base:.1f}">'
            f"{escape(text)}</text>"
        )
    yield "</g>"


def _curve(path: Sequence[Point]) -> str:
    """Straight within layers, and between them a curve that starts and ends upright."""
    first = path[0]
    parts = [f"M{first.x:.1f} {first.y:.1f}"]
    for number, (a, b) in enumerate(pairwise(path)):
        if number % 2:
            parts.append(f"L{b.x:.1f} {b.y:.1f}")
        else:
            middle = (a.y + b.y) / 2
            parts.append(
                f"C{a.x:.1f} {middle:.1f} {b.x:.1f} {middle:.1f} {b.x:.1f} {b.y:.1f}"
            )
    return "".join(parts)


def _kind(op: Operator) -> str:
    if op.ON_TENSOR_CORES:
        return "product"
    if op.REDUCTION is not None:
        return "reduction"
    return "view" if op.IS_VIEW or not op.operands else "elementwise"


def _value(value: SSAValue) -> str:
    type_ = cast(TensorType, value.type)
    name = f"%{value.name_hint} " if value.name_hint else ""
    return f"{name}{_shape(type_)}"


def _shape(type_: TensorType) -> str:
    return f"[{', '.join(map(str, type_.dims))}] {type_.element_type}"
