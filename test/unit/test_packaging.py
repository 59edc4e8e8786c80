"""What a wheel holds, and that it works away from the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
FOLDERS = {
    "cleave_dialects": "dialects",
    "lowering": "lowering",
    "passes": "passes",
    "tools": "tools",
}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of this checkout and must not need it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy of this checkout, since setuptools writes where it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    copy.mkdir()
    for name in ("cleave", *FOLDERS):
        shutil.copytree(
            CHECKOUT / name,
            copy / name,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(CHECKOUT / name, copy)
    code = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    built = run(sys.executable, "-c", code, cwd=copy)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
    installed = run(*pip, "install", "--no-index", "--no-deps", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    # What it depends on comes from here. A path file in there is not read: the editable
    # install of this checkout stays out.
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "here.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


def test_wheel_claims_one_name_and_holds_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in packaged} == {"cleave"}
    written = {
        f"cleave/{package}/{source.relative_to(CHECKOUT / folder)}"
        for folder, package in FOLDERS.items()
        for source in (CHECKOUT / folder).rglob("*")
        if source.is_file() and source.suffix not in {".md", ".pyc"}
    }
    own = {"cleave/__init__.py", "cleave/py.typed", "cleave/universe.py"}
    assert packaged == written | own


def test_installed_wheel_runs(environment: Path, tmp_path: Path) -> None:
    where = run(
        environment / "python",
        "-c",
        "import cleave.passes; print(cleave.passes.__file__)",
        cwd=tmp_path,
    )
    assert Path(where.stdout).is_relative_to(environment.parent)
    (tmp_path / "empty.mlir").write_text("builtin.module {}\n")
    for command in (
        ["cleave-opt", "empty.mlir", "-p", "canonicalize"],
        ["python", "-m", "xdsl.tools.xdsl_opt", "empty.mlir"],
        ["cleave", "--version"],
    ):
        outcome = run(environment / command[0], *command[1:], cwd=tmp_path)
        assert (outcome.returncode, outcome.stderr) == (0, "")


def test_editable_install_is_this_checkout(tmp_path: Path) -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    outcome = run(
        scripts / "python", "-c", "import cleave; print(cleave.__file__)", cwd=tmp_path
    )
    assert Path(outcome.stdout.strip()) == CHECKOUT / "cleave" / "__init__.py"
    assert run(scripts / "cleave-opt", "--version", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(("folder", "package"), FOLDERS.items())
def test_folder_refuses_its_bare_name(folder: str, package: str) -> None:
    outcome = run(sys.executable, "-c", f"import {folder}", cwd=CHECKOUT)
    message = f"ImportError: import cleave.{package}, not {folder}\n"
    assert outcome.returncode == 1
    assert outcome.stderr.endswith(message)


@pytest.mark.parametrize("folder", FOLDERS)
def test_ruff_bans_the_bare_name(folder: str) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--stdin-filename", "tools/a.py", "-"],
        input=f'"""Imports."""\n\nimport {folder}.b as b\n\nb.c()\n',
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    assert "TID251" in outcome.stdout
