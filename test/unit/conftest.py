"""Fixtures that several files of tests share."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from cleave.dialects.algebra import Algebra
from cleave.dialects.itgraph import ItGraph
from cleave.tools import opt


@pytest.fixture(scope="session")
def parse_ir() -> Callable[[str], ModuleOp]:
    """`parse_ir(text)` is the module of that text, which is not verified."""

    def parse(text: str) -> ModuleOp:
        ctx = Context()
        for dialect in (Builtin, Algebra, ItGraph):
            ctx.load_dialect(dialect)
        return Parser(ctx, text).parse_module()

    return parse


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
