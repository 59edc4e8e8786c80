"""`cleave` and `cleave doctor`."""

import dataclasses
import gc
import json
import os
import signal
import sys
import time
import tomllib
import weakref
from importlib import import_module
from pathlib import Path

import pytest

from cleave.tools import COMMANDS, doctor, main, survey
from cleave.tools.errors import guarded
from cleave.tools.survey import Gpu, Nvcc, Package, Survey

H200 = Gpu("NVIDIA H200", (9, 0), 139.8, usable=True)

COMPLETE = Survey(
    cleave="1.0",
    python="3.12.1",
    system="Linux",
    packages=tuple(
        Package(name, "1.0", None) for name in survey.REQUIRED + survey.FOR_KERNELS
    ),
    gpus=(H200,),
    nvcc=Nvcc("/usr/bin/nvcc", "13.0.88"),
)


def without(name: str, problem: str | None = None) -> Survey:
    """`COMPLETE` but for one package that is not there, or has a problem."""
    version = "1.0" if problem else None
    return dataclasses.replace(
        COMPLETE,
        packages=tuple(
            Package(name, version, problem) if package.name == name else package
            for package in COMPLETE.packages
        ),
    )


def missing(found: Survey) -> list[tuple[str, ...]]:
    return [part.missing for part in found.parts()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_asked_for_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main.main([name, "--help"])
    help_ = capsys.readouterr().out
    assert help_.startswith(f"usage: cleave {name} ")
    assert COMMANDS[name][1] in help_


def test_commands_that_are_not_used_are_not_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(COMMANDS, "other", ("no.such.module", "Do other things"))
    with pytest.raises(SystemExit, match=r"^0$"):
        main.main(["doctor", "--help"])
    with pytest.raises(SystemExit, match=r"^0$"):
        main.main(["--help"])
    assert "Do other things" in capsys.readouterr().out


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["docter"]) == 1
    error = capsys.readouterr().err
    assert error == "error: there is no command 'docter': did you mean doctor?\n"


def test_command_that_fails_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Survey:
        raise ValueError("no such luck")

    monkeypatch.setattr(doctor, "survey", fail)
    assert main.main(["doctor"]) == 1
    assert capsys.readouterr().err == "error: no such luck\n"
    assert main.main(["doctor", "--debug"]) == 1
    assert capsys.readouterr().err.startswith("Traceback")


def test_doctor_finds_what_tests_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["python"] == sys.version.split()[0]
    packages = {package["name"]: package for package in found["packages"]}
    assert packages["xdsl"] == {"name": "xdsl", "version": "0.75.0", "problem": None}
    assert found["parts"]["lowering to CUDA source"] == []


def test_required_packages_are_those_of_the_project() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    dependencies = tomllib.loads(project.read_text())["project"]["dependencies"]
    names = [
        dependency.partition(">")[0].partition("=")[0] for dependency in dependencies
    ]
    assert tuple(names) == survey.REQUIRED


def test_everything_works_where_everything_is_there() -> None:
    assert missing(COMPLETE) == [(), (), (), ()]


@pytest.mark.parametrize("problem", [None, "OSError: no libnuma"])
def test_each_missing_thing_costs_what_needs_it(problem: str | None) -> None:
    numpy, torch = (("numpy",), ("torch",))
    assert missing(without("numpy", problem)) == [numpy, numpy, numpy, numpy]
    assert missing(without("torch", problem)) == [(), torch, torch, torch]
    assert missing(dataclasses.replace(COMPLETE, nvcc=None)) == [
        (),
        (),
        ("nvcc",),
        ("nvcc",),
    ]


@pytest.mark.parametrize(
    ("gpus", "need"),
    [
        ((), "an NVIDIA GPU of compute capability 8.0 or more"),
        (
            (dataclasses.replace(H200, capability=(7, 5)),),
            "an NVIDIA GPU of compute capability 8.0 or more",
        ),
        (
            (dataclasses.replace(H200, usable=False),),
            "a PyTorch that can use the GPU",
        ),
    ],
)
def test_gpu_must_be_new_enough_and_usable(gpus: tuple[Gpu, ...], need: str) -> None:
    found = dataclasses.replace(COMPLETE, gpus=gpus)
    assert missing(found) == [(), (), (), (need,)]


def test_exit_code_says_whether_the_cpu_part_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "survey", lambda: without("torch"))
    assert main.main(["doctor"]) == 0
    assert "torch         not installed" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "survey", lambda: without("sympy", "OSError: damaged"))
    assert main.main(["doctor"]) == 1
    output = capsys.readouterr().out
    assert "sympy         1.0, which does not load: OSError: damaged" in output
    assert (
        "no            passes, search and execution on the CPU: needs sympy" in output
    )


def test_package_that_does_not_load_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "damaged_thing.py").write_text("raise OSError('no libnuma')")
    (tmp_path / "damaged_thing-2.0.dist-info").mkdir()
    (tmp_path / "damaged_thing-2.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: damaged-thing\nVersion: 2.0\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = survey.find_package("damaged_thing")
    assert found == Package("damaged_thing", "2.0", "OSError: no libnuma")
    assert not found.works
    assert survey.find_package("never_heard_of") == Package(
        "never_heard_of", None, None
    )


def executable(path: Path, output: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
    path.chmod(0o755)


def test_nvcc_is_that_of_cuda_home_or_else_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "home" / "bin" / "nvcc", "release 12.8, V12.8.93")
    executable(tmp_path / "path" / "nvcc", "release 13.0, V13.0.88")
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    found = survey.find_nvcc()
    assert found == Nvcc(str(tmp_path / "home" / "bin" / "nvcc"), "12.8.93")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "empty"))
    assert survey.find_nvcc() is None
    monkeypatch.delenv("CUDA_HOME")
    assert survey.find_nvcc() == Nvcc(str(tmp_path / "path" / "nvcc"), "13.0.88")


def test_driver_names_gpus_that_pytorch_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "9.0, 143771, NVIDIA H200\n12.0, 97887, NVIDIA RTX PRO 6000, Max-Q"
    executable(tmp_path / "bin" / "nvidia-smi", rows)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    first, second = survey.driver_gpus()
    assert first == Gpu("NVIDIA H200", (9, 0), 143771 / 1024, usable=False)
    assert (second.name, second.capability) == ("NVIDIA RTX PRO 6000, Max-Q", (12, 0))


def test_command_modules_have_what_the_table_promises() -> None:
    for module, _ in COMMANDS.values():
        command = import_module(module)
        assert callable(command.add_arguments)
        assert callable(command.run)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_an_interrupted_command_leaves_its_garbage(
    number: signal.Signals, status: int
) -> None:
    """To go through what a search has left took longer than the search."""

    class Cycle:
        def __init__(self) -> None:
            self.own = self

    gone: list[weakref.ref[Cycle]] = []

    def command() -> int:
        gone.append(weakref.ref(Cycle()))
        os.kill(os.getpid(), number)
        time.sleep(5)
        return 0

    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    gc.disable()
    try:
        assert guarded(command, debug=False) == status
        gc.collect()
        assert gone[0]() is not None
    finally:
        gc.unfreeze()
        gc.enable()
    gc.collect()
    assert gone[0]() is None
    after = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert after == handlers
