"""Every error of `cleave-opt` is one message, which says where, and exit code 1."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, Annotated, Literal

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException, PassFailedException
from xdsl.utils.target import Target

from cleave.passes.option_ranges import Range
from cleave.tools import opt
from cleave.universe import CLEAVE

Run = Callable[..., CompletedProcess[str]]

VALID = """\
func.func @f(%a: i32) -> i32 {
  func.return %a : i32
}
"""


@dataclass(frozen=True)
class Broken(ModulePass):
    """Fails in the way that its option says."""

    name = "broken"

    how: Literal["user", "value", "defect", "ir"] = "user"
    repeat_count: Annotated[int | None, Range(1, 8)] = 1
    seconds: Annotated[float, Range(0)] = 1.0
    sizes: Annotated[tuple[int, ...], Range(2)] = ()
    loud: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        match self.how:
            case "user":
                raise PassFailedException("'func.func' op: dim 0 is not divisible")
            case "value":
                raise ValueError("M = 4 contradicts M = 8")
            case "defect":
                raise KeyError("M")
            case "ir":
                (returned,) = (o for o in op.walk() if isinstance(o, ReturnOp))
                returned.operands = ()


@dataclass(frozen=True)
class Count(Target):
    """Prints the number of operations, or refuses to."""

    name = "count"

    at_most: int = 100

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        if (count := len(list(module.walk()))) > self.at_most:
            raise DiagnosticException(f"'builtin.module' op: {count} operations")
        output.write(f"{count}\n")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLEAVE.all_passes, Broken.name, lambda: Broken)
    monkeypatch.setitem(CLEAVE.all_targets, Count.name, lambda: Count)


def failure(outcome: CompletedProcess[str]) -> str:
    """The message of a run that failed as it should, and so printed nothing else."""
    assert outcome.returncode == 1
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    return outcome.stderr


def test_valid_input_is_printed(cleave_opt: Run) -> None:
    outcome = cleave_opt(VALID)
    assert outcome.returncode == 0
    assert outcome.stderr == ""
    assert "func.return %a : i32" in outcome.stdout


def test_syntax_error_has_line_and_caret(cleave_opt: Run) -> None:
    assert failure(cleave_opt(VALID.replace("%a : i32", "%a , i32"))) == (
        "input.mlir:2:20: error: operand expected\n"
        "  func.return %a , i32\n"
        "                   ^^^\n"
    )


def test_syntax_error_in_a_later_piece_has_its_line_in_the_file(
    cleave_opt: Run,
) -> None:
    text = f"{VALID}// -----\nfunc.func @f( {{}}\n"
    outcome = cleave_opt(text, "--split-input-file")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("input.mlir:5:15: error: ")


@pytest.mark.parametrize("text", ["", "\n", "// nothing yet\n"])
def test_no_operation_makes_an_empty_module(cleave_opt: Run, text: str) -> None:
    assert cleave_opt(text).stdout == "builtin.module {\n}\n\n"


def test_what_is_no_operation_has_its_place(cleave_opt: Run) -> None:
    assert failure(cleave_opt(f"{VALID}%a\n{VALID}")).startswith("input.mlir:5:1: ")
    assert failure(cleave_opt(f"{VALID}42\n")) == (
        "input.mlir:4:1: error: an operation is expected here\n42\n^^\n"
    )


@pytest.mark.parametrize("end", ["", "  42\n}\n"])
def test_what_ends_no_region_has_its_place(cleave_opt: Run, end: str) -> None:
    message = failure(cleave_opt(VALID.replace("}\n", end)))
    assert message.startswith(
        f"input.mlir:3:{3 if end else 1}: error: an operation or '}}' is expected here"
    )


def test_a_file_of_any_name_is_read_as_mlir_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "input.txt"
    file.write_text(VALID)
    assert opt.main([str(file)]) == 0
    assert "func.return %a : i32" in capsys.readouterr().out
    assert opt.main(["/dev/null"]) == 0


def test_unknown_operation_has_its_place_and_those_close_to_it(cleave_opt: Run) -> None:
    assert failure(cleave_opt("%c = arith.constnt 0 : i32\n")) == (
        "input.mlir:1:1: error: there is no operation 'arith.constnt': "
        "did you mean arith.constant?\n"
        "%c = arith.constnt 0 : i32\n"
        "^^^^^^^^^^^^^^^^^^\n"
    )


def test_unknown_dialect_is_named(cleave_opt: Run) -> None:
    message = failure(cleave_opt(f"{VALID}foo.bar\n"))
    assert message == (
        "input.mlir:4:1: error: there is no operation 'foo.bar': nor a dialect 'foo'\n"
        "foo.bar\n^^^^^^^\n"
    )


def test_verifier_error_names_the_operation_and_shows_its_line(cleave_opt: Run) -> None:
    text = VALID.replace("func.return %a : i32", "func.return // of nothing")
    assert failure(cleave_opt(text)) == (
        "input.mlir:2:3: error: 'func.return' op: Expected arguments to have the same "
        "types as the function output types: expected [i32], got []\n"
        "  func.return // of nothing\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    )


def test_verifier_error_in_a_later_piece_has_its_line_in_the_file(
    cleave_opt: Run,
) -> None:
    invalid = VALID.replace(" %a : i32\n", "\n")
    outcome = cleave_opt(f"{VALID}// -----\n{invalid}", "--split-input-file")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("input.mlir:6:3: error: 'func.return' op: ")


def test_attribute_that_does_not_verify_has_a_line(cleave_opt: Run) -> None:
    assert failure(cleave_opt("\n%c = arith.constant 300 : i8\n")) == (
        "input.mlir:2:1: error: Integer value 300 is out of range for type i8 which "
        "supports values in the range [-128, 256)\n"
        "%c = arith.constant 300 : i8\n"
        "^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    )


def test_verify_diagnostics_prints_the_message_alone(cleave_opt: Run) -> None:
    invalid = VALID.replace(" %a : i32\n", "\n")
    outcome = cleave_opt(invalid, "--verify-diagnostics")
    assert outcome.returncode == 0
    assert outcome.stdout.startswith("'func.return' op: Expected arguments")
    assert "builtin.module" not in outcome.stdout


def test_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["no/such.mlir"]) == 1
    assert capsys.readouterr().err == "error: no/such.mlir: No such file or directory\n"


def test_text_that_is_not_utf8(cleave_opt: Run) -> None:
    message = failure(cleave_opt(b"// \xff\n"))
    assert message == "error: input.mlir: not UTF-8: invalid start byte at byte 3\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-p brokn", "error: there is no pass 'brokn': did you mean broken?"),
        ("-p qqqqq", "error: there is no pass 'qqqqq': see cleave-opt --help"),
        (
            "-p broken{repeat-cuont=2}",
            "error: pass 'broken' has no option 'repeat-cuont': "
            "did you mean repeat-count?",
        ),
        (
            "-p broken{tile=4}",
            "error: pass 'broken' has no option 'tile': there is how, repeat-count, "
            "seconds, sizes, loud",
        ),
        (
            "-p broken -t count{at-mst=1}",
            "error: target 'count' has no option 'at-mst': did you mean at-most?",
        ),
        ("-t count,count", "error: one target prints the module, not 'count,count'"),
        ("-t mlr", "error: argument -t/--target: invalid choice: 'mlr' (choose from "),
        ("-f mlr", "error: argument -f/--frontend: invalid choice: 'mlr' (choose from"),
        ("--pases a", "error: unrecognized arguments: --pases a"),
    ],
)
def test_unknown_name(cleave_opt: Run, arguments: str, message: str) -> None:
    assert failure(cleave_opt(VALID, *arguments.split(" "))).startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("repeat-count=many", "is 'many'; it takes a whole number from 1 to 8"),
        ("repeat-count=0", "is 0; it takes a whole number from 1 to 8"),
        ("repeat-count=9", "is 9; it takes a whole number from 1 to 8"),
        ("repeat-count=-1", "is -1; it takes a whole number from 1 to 8"),
        ("repeat-count=1.0", "is 1.0; it takes a whole number from 1 to 8"),
        ("repeat-count=true", "is true; it takes a whole number from 1 to 8"),
        ("repeat-count=1,2", "is 1, 2; it takes a whole number from 1 to 8"),
        ("seconds=soon", "is 'soon'; it takes a number of at least 0"),
        ("seconds=-1", "is -1; it takes a number of at least 0"),
        ("seconds", "has no value; it takes a number of at least 0"),
        ("sizes=2,1", "is 2, 1; it takes whole numbers of at least 2"),
        ("sizes=big", "is 'big'; it takes whole numbers of at least 2"),
        ("loud=1", "is 1; it takes true or false"),
        ("loud", "has no value; it takes true or false"),
        ("how=never", "is 'never'; it takes user or value or defect or ir"),
        ("repeat-count=1 repeat_count=2", "is given twice"),
        ("seconds=1 loud=true seconds=2", "is given twice"),
    ],
)
def test_option_that_does_not_fit_is_named_with_what_it_takes(
    cleave_opt: Run, given: str, message: str
) -> None:
    option, _, _ = given.partition("=")
    passes = f"canonicalize,broken{{{given}}}"
    assert failure(cleave_opt(VALID, "-p", passes)) == (
        f"error: pass 'broken': option {option} {message}\n"
    )


def test_options_that_fit_reach_the_pass(cleave_opt: Run) -> None:
    options = "seconds=2 sizes=2,3 repeat-count=8 loud=true how=value"
    message = failure(cleave_opt(VALID, "-p", f"broken{{{options}}}"))
    assert message == "error: pass 'broken': M = 4 contradicts M = 8\n"


def test_target_option_that_does_not_fit_is_named(cleave_opt: Run) -> None:
    message = failure(cleave_opt(VALID, "-t", "count{at-most=few}"))
    assert message == (
        "error: target 'count': option at-most is 'few'; it takes a whole number\n"
    )
    message = failure(cleave_opt(VALID, "-t", "count{at-most=1 at-most=2}"))
    assert message == "error: target 'count': option at-most is given twice\n"


def test_malformed_pipeline_has_a_caret(cleave_opt: Run) -> None:
    assert failure(cleave_opt(VALID, "-p", "canonicalize,broken{how")) == (
        "error: malformed pipeline, target or frontend\n"
        "canonicalize,broken{how\n"
        "                       ^\n"
        "                       Expected equals, space or end of arguments here\n"
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("user", "error: pass 'broken': 'func.func' op: dim 0 is not divisible\n"),
        ("value", "error: pass 'broken': M = 4 contradicts M = 8\n"),
        (
            "defect",
            "error: internal error: KeyError: 'M'\nin pass 'broken'\n"
            "This is a defect of Cleave; --debug shows where it happened.\n",
        ),
        (
            "ir",
            "error: pass 'broken' left an invalid operation: 'func.return' op: "
            "Expected arguments to have the same types as the function output types: "
            "expected [i32], got []\n  func.return\n",
        ),
    ],
)
def test_pass_that_fails_is_named(cleave_opt: Run, how: str, message: str) -> None:
    arguments = ("-p", f"canonicalize,broken{{how={how}}},canonicalize")
    assert failure(cleave_opt(VALID, *arguments)) == message


def test_target_that_fails_prints_nothing(cleave_opt: Run) -> None:
    assert cleave_opt(VALID, "-t", "count").stdout == "3\n"
    message = failure(cleave_opt(VALID, "-t", "count{at-most=2}"))
    assert message == "error: 'builtin.module' op: 3 operations\n"


def test_debug_shows_the_traceback_before_the_message(cleave_opt: Run) -> None:
    outcome = cleave_opt(VALID, "-p", "broken", "--debug")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("Traceback (most recent call last):")
    assert outcome.stderr.endswith("op: dim 0 is not divisible\n")


def test_reader_that_leaves_early_gets_silence(tmp_path: Path) -> None:
    file = tmp_path / "input.mlir"
    file.write_text(VALID)
    with subprocess.Popen(
        [sys.executable, "-m", "cleave.tools.opt", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1
