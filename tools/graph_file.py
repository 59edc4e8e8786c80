"""Reading the graphs of a file, or of a text."""

import sys
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.equal_graphs import EQUALS
from cleave.passes.partitioning.piece import KERNEL
from cleave.tools.errors import UsageError, unknown
from cleave.tools.located_parser import LocatedParser
from cleave.tools.verification import explained
from cleave.universe import CLEAVE

STANDARD_INPUT = "-"


def read_graph(path: str, name: str | None = None) -> GraphOp:
    """
    The graph called `name` in a file, by default the only one; `-` is standard input.

    Raises OSError for a file that cannot be read, and what `parse_graph` raises.
    """
    if path == STANDARD_INPUT:
        return parse_graph(sys.stdin.buffer.read(), "stdin", name)
    return parse_graph(Path(path).read_bytes(), path, name)


def parse_graph(text: bytes, source: str, name: str | None = None) -> GraphOp:
    """
    The graph called `name` in IR text, by default the only one; `source` is what
    messages call the text.

    Raises ParseError or VerifyException, with the place, for text that is no valid IR;
    UsageError, with what there is, if it has no such graph, or several and no name.
    """
    ctx = Context()
    ctx.load_dialect(Builtin)
    for dialect, factory in CLEAVE.all_dialects.items():
        ctx.register_dialect(dialect, factory)
    parser = LocatedParser(ctx, text, source)
    module = parser.parse_module()
    try:
        module.verify()
    except VerifyException as error:
        raise explained(error, module, parser.spans) from error
    graphs = {op.graph_name: op for op in module.ops if isinstance(op, GraphOp)}
    if name is not None and name not in graphs:
        raise unknown(f"{source}: there is no graph", name, graphs)
    if not graphs:
        raise UsageError(f"{source}: there is no algebra.graph")
    if name is None and len(graphs) > 1:
        raise UsageError(
            f"{source}: there are {len(graphs)} graphs, so name one: "
            + ", ".join(graphs)
        )
    graph = graphs[name] if name is not None else next(iter(graphs.values()))
    graph.detach()
    for reference in (EQUALS, KERNEL):  # to graphs that are left behind
        graph.attributes.pop(reference, None)
    return graph
