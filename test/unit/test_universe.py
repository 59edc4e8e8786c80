"""The tables of dialects, passes and targets, and who sees them."""

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.target import Target

from cleave.dialects import DIALECTS
from cleave.lowering import TARGETS
from cleave.passes import PASSES
from cleave.universe import CLEAVE

ALL_INT = """\
algebra.graph @f (%q: !algebra.tensor<[8, 16], f32>, %k: !algebra.tensor<[16, 4], f32>)
    -> (!algebra.tensor<[8, 4], f32>) {
  %s = algebra.matmul %q, %k : !algebra.tensor<[8, 4], f32>
  algebra.return %s
}
"""

SYMBOLIC = """\
algebra.graph @f [M, K, N] where [M = 8]
    (%q: !algebra.tensor<[M, K], f32>, %k: !algebra.tensor<[K, N], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %s = algebra.matmul %q, %k : !algebra.tensor<[M, N], f32>
  algebra.return %s
}
"""


@pytest.mark.parametrize("name", DIALECTS)
def test_dialect_loads_under_its_name(name: str) -> None:
    dialect = CLEAVE.all_dialects[name]()
    assert isinstance(dialect, Dialect)
    assert dialect.name == name


@pytest.mark.parametrize("name", PASSES)
def test_pass_loads_under_its_name_from_its_file(name: str) -> None:
    loaded: Any = CLEAVE.all_passes[name]()
    assert issubclass(loaded, ModulePass)
    assert loaded.name == name
    stem = name.replace("-", "_")
    own_file, in_own_folder = f"cleave.passes.{stem}", f"cleave.passes.{stem}.{stem}"
    assert PASSES[name][0] in (own_file, in_own_folder)
    assert loaded.__doc__, "its docstring is its documentation"


@pytest.mark.parametrize("name", TARGETS)
def test_target_loads_under_its_name(name: str) -> None:
    loaded: Any = CLEAVE.all_targets[name]()
    assert issubclass(loaded, Target)
    assert loaded.name == name


def test_xdsl_has_none_of_the_names() -> None:
    """A clash would stop every xDSL tool in the environment."""
    assert not XDSL_UNIVERSE.all_dialects.keys() & DIALECTS.keys()
    assert not XDSL_UNIVERSE.all_passes.keys() & PASSES.keys()
    assert not XDSL_UNIVERSE.all_targets.keys() & TARGETS.keys()


def test_xdsl_finds_everything() -> None:
    everything = Universe.get_multiverse()
    assert DIALECTS.keys() <= everything.all_dialects.keys()
    assert PASSES.keys() <= everything.all_passes.keys()
    assert TARGETS.keys() <= everything.all_targets.keys()


def cpu_seconds(*command: str | Path) -> float:
    """The processor time of a command when the machine is least disturbed: of three."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(3))


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a text to a file."""

    def write(text: str) -> Path:
        file = tmp_path / "input.mlir"
        file.write_text(text)
        return file

    return write


def test_plain_xdsl_opt_reads_and_prints_cleave(written: Callable[[str], Path]) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "xdsl.tools.xdsl_opt", str(written(SYMBOLIC))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "%s = algebra.matmul %q, %k : !algebra.tensor<[M, N], f32>" in outcome.stdout


@pytest.mark.parametrize(("text", "limit"), [(ALL_INT, 0.7), (SYMBOLIC, 1.4)])
def test_tool_starts_fast(
    written: Callable[[str], Path], text: str, limit: float
) -> None:
    tool = (sys.executable, "-m", "cleave.tools.opt")
    assert cpu_seconds(*tool, written(text)) < limit


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        (ALL_INT, "sympy numpy ml_dtypes torch tilelang networkx rich jinja2"),
        (SYMBOLIC, "numpy ml_dtypes torch tilelang networkx rich jinja2"),
    ],
)
def test_tool_imports_what_a_file_needs(
    written: Callable[[str], Path], text: str, absent: str
) -> None:
    code = (
        "import sys; from cleave.tools.opt import main; status = main(sys.argv[1:2]); "
        "sys.exit(status or str(sys.modules.keys() & sys.argv[2:]))"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code, str(written(text)), *absent.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.stderr == "set()\n"
