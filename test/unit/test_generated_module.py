import copy
from pathlib import Path
from typing import Any

import pytest

from cleave.lowering.generated import GeneratedModuleError, load_generated
from cleave.lowering.plan import KernelArg, Plan, PlanError, TensorSpec, evaluate_shape

PLAN: dict[str, Any] = {
    "name": "rowsum",
    "args": [
        {"name": "x", "shape": ["M", 64], "dtype": "float16"},
        {"name": "w", "shape": [64, 256], "dtype": "float16"},
    ],
    "results": [{"name": "y", "shape": ["M", 1], "dtype": "float32"}],
    "temporaries": [
        {"name": "part", "shape": [4, "M ceildiv 2"], "dtype": "float32"},
    ],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["x", {"name": "w", "shape": [8, 8, 256]}, "part"],
            "pass_configs": {"tl.enable_fast_math": True},
            "requires": ["wgmma"],
        },
        {
            "function": "kernel_1",
            "args": ["part", {"name": "y", "shape": ["M"]}],
            "pass_configs": {},
            "requires": [],
        },
    ],
    "sizes": {"N": 256},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """PLAN with the entry at `path` ("kernels/0/args") replaced."""
    plan = copy.deepcopy(PLAN)
    *parents, last = [int(k) if k.isdigit() else k for k in path.split("/")]
    entry: Any = plan
    for key in parents:
        entry = entry[key]
    entry[last] = value
    return plan


def write(path: Path, plan: object, functions: str = "") -> Path:
    path.write_text(f"PLAN = {plan!r}\n\n{functions}\n")
    return path


def test_plan_reads_every_part() -> None:
    plan = Plan.parse(PLAN)
    assert plan.args[0] == TensorSpec("x", ("M", 64), "float16")
    assert plan.kernels[0].args[1] == KernelArg("w", (8, 8, 256))
    assert plan.kernels[0].pass_configs == {"tl.enable_fast_math": True}
    assert plan.kernels[0].requires == ("wgmma",)
    assert plan.dynamic_dims == ("M",)
    assert list(plan.tensors) == ["x", "w", "y", "part"]


def test_plan_survives_its_literal() -> None:
    plan = Plan.parse(PLAN)
    assert plan.literal() == PLAN
    assert Plan.parse(plan.literal()) == plan


def test_shapes_take_the_values_of_dynamic_dims() -> None:
    assert evaluate_shape((4, "M", "M ceildiv 2"), {"M": 7}) == (4, 7, 4)
    assert Plan.parse(PLAN).temporaries[0].bytes({"M": 7}) == 4 * 4 * 4
    with pytest.raises(KeyError, match="M"):
        evaluate_shape(("M",), {})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("name", 3, "the name is 3, no text"),
        ("args/0/dtype", "f16", "x: unknown dtype f16; one of float16"),
        ("args/0/shape", ["M", -1], "x: -1 is no dim"),
        ("args/0/shape", ["M", True], "x: True is no dim"),
        ("args/0/shape", 64, "the shape of x: a list is expected, not 64"),
        ("args/1/name", "x", "two tensors are called x"),
        ("args/1/name", "y", "two tensors are called y"),
        ("results/0/shape", ["L"], "y: dim 'L' names L, which is no argument's dim"),
        ("results/0/shape", ["M +"], r"y: 'M \+' is no dim"),
        ("results", [], "at least one result and one kernel"),
        ("kernels/0/args", ["x", "part", "q"], "kernel_0 takes q, no such tensor"),
        ("kernels/1/args", ["part"], "no kernel takes y, so nothing writes it"),
        (
            "kernels/0/args/1",
            {"name": "w", "shape": [64, 128]},
            "kernel_0's view of w has 8192 elements, the tensor 16384",
        ),
        ("kernels/0/requires", ["hmma"], "requires 'hmma', no instruction family"),
        ("kernels/0/pass_configs", {"a": 1.5}, "pass config a is 1.5"),
        ("kernels/0/launch", 1, "kernels: unknown key 'launch'"),
        ("sizes", {"N": "256"}, "size N is '256', no integer"),
    ],
)
def test_plan_names_what_is_wrong(path: str, value: object, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.parse(changed(path, value))


def test_plan_names_what_is_missing() -> None:
    plan = copy.deepcopy(PLAN)
    del plan["kernels"][1]["requires"]
    with pytest.raises(PlanError, match="kernels: 'requires' is missing"):
        Plan.parse(plan)


def test_module_is_read_without_being_executed(tmp_path: Path) -> None:
    path = write(tmp_path / "m.py", PLAN, "raise SystemExit")
    assert load_generated(path).plan == Plan.parse(PLAN)


def test_executing_a_module_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build is copied file by file."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    functions = "def kernel_0(): ...\ndef kernel_1(): ..."
    load_generated(write(tmp_path / "m.py", PLAN, functions)).functions()
    assert [path.name for path in tmp_path.iterdir()] == ["m.py"]


def test_annotations_of_a_module_are_values(tmp_path: Path) -> None:
    """TileLang takes sizes of parameters from there; nothing else may name them."""
    functions = """
def kernel_0():
    size = 3
    def kernel(x: size): ...
    return kernel
def kernel_1(): ...
"""
    kernels = load_generated(write(tmp_path / "m.py", PLAN, functions)).functions()
    assert kernels["kernel_0"]().__annotations__ == {"x": 3}


def test_two_modules_of_one_file_name_stay_apart(tmp_path: Path) -> None:
    functions = "def kernel_0(): return {0}\ndef kernel_1(): return {0} + 1"
    found: list[int] = []
    for n in (1, 5):
        folder = tmp_path / str(n)
        folder.mkdir()
        module = load_generated(write(folder / "m.py", PLAN, functions.format(n)))
        found += [function() for function in module.functions().values()]
    assert found == [1, 2, 5, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PLAN = (", r"m\.py:1: '\(' was never closed"),
        ("plan = {}", r"m\.py: PLAN is assigned 0 times"),
        ("PLAN = {}\nPLAN = {}", r"m\.py: PLAN is assigned 2 times"),
        ("n = 3\nPLAN = dict(a=n)", r"m\.py:2: PLAN is not a plain literal"),
        ("PLAN = {}", r"m\.py: PLAN: top level: 'name' is missing"),
    ],
)
def test_a_file_that_is_no_generated_module(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "m.py"
    path.write_text(text)
    with pytest.raises(GeneratedModuleError, match=message):
        load_generated(path)


def test_functions_say_what_the_file_raised(tmp_path: Path) -> None:
    path = write(tmp_path / "m.py", PLAN, "def kernel_0(): ...\n1 / 0")
    with pytest.raises(
        GeneratedModuleError, match=r"m\.py: ZeroDivisionError: division by zero"
    ):
        load_generated(path).functions()


def test_functions_name_one_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "m.py", PLAN, "def kernel_0(): ...")
    with pytest.raises(
        GeneratedModuleError, match="PLAN launches kernel_1, no function"
    ):
        load_generated(path).functions()
