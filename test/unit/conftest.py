"""Fixtures that several files of tests share."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, Builtin, ModuleOp
from xdsl.parser import Parser

from cleave.dialects.algebra import Algebra
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import symbol
from cleave.dialects.fact import Fact
from cleave.dialects.itgraph import ItGraph
from cleave.dialects.tensor import FactAttr
from cleave.tools import opt

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def parse_ir() -> Callable[[str], ModuleOp]:
    """`parse_ir(text)` is the module of that text, which is not verified."""

    def parse(text: str) -> ModuleOp:
        ctx = Context()
        for dialect in (Builtin, Algebra, ItGraph):
            ctx.load_dialect(dialect)
        return Parser(ctx, text).parse_module()

    return parse


@pytest.fixture(scope="session")
def example_graph(parse_ir: Callable[[str], ModuleOp]) -> Callable[..., GraphOp]:
    """`example_graph("matmul", M=16)` is the graph of an example, at other sizes."""

    def load(name: str, **sizes: int) -> GraphOp:
        text = (EXAMPLES / f"{name}.mlir").read_text(encoding="utf-8")
        graph = next(op for op in parse_ir(text).ops if isinstance(op, GraphOp))
        graph.detach()
        bound = {fact.data.lhs: fact.data for fact in graph.where}
        bound |= {symbol(n): Fact(symbol(n), "=", size) for n, size in sizes.items()}
        graph.where = ArrayAttr(map(FactAttr, bound.values()))
        graph.verify()
        return graph

    return load


@pytest.fixture
def cleave_opt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CompletedProcess[str]]:
    """
    `cleave_opt(text, *arguments)` runs cleave-opt on a file `input.mlir` of that text.
    It does so in this process, which is ten times as fast as in another.
    """

    def run(text: str | bytes, *arguments: str) -> CompletedProcess[str]:
        file = tmp_path / "input.mlir"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        command = [str(file), *arguments]
        status = opt.main(command)
        out, err = capsys.readouterr()
        return CompletedProcess(command, status, out, err.replace(f"{tmp_path}/", ""))

    return run
