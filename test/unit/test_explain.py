"""`cleave explain`."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cleave.tools import main

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = Path(__file__).parents[2] / "examples"


def explain(*args: str, example: str = "mha") -> int:
    return main.main(["explain", str(EXAMPLES / f"{example}.mlir"), *args])


def test_the_table_says_what_moved(capsys: pytest.CaptureFixture[str]):
    assert explain() == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "@mha: 2 equal graphs from 18 values in" in text
    assert "not at all" in text
    assert "div %n behind" in text


@pytest.mark.parametrize(
    ("example", "number", "changes"),
    [
        ("mha", 2, ["div %n behind matmul %o"]),
        ("matmul_rowsum", 2, ["matmul %y behind reduce_sum %o"]),
        ("rmsnorm_matmul", 2, ["div %normal behind matmul %o"]),
        ("attention_softmax", 2, ["needs no reduce_max, sub"]),
    ],
)
def test_changes_in_words(
    capsys: pytest.CaptureFixture[str], example: str, number: int, changes: list[str]
):
    assert explain("--json", example=example) == 0
    described = json.loads(capsys.readouterr().out)
    candidate = described["candidates"][number - 1]
    assert candidate["number"] == number
    assert candidate["changes"] == changes


def test_json_has_everything(capsys: pytest.CaptureFixture[str]):
    assert explain("--json", "--split") == 0
    described = json.loads(capsys.readouterr().out)
    assert described["graph"] == "mha"
    assert described["search"]["statistics"]["values"] == 49
    assert [c["operators"] for c in described["candidates"]] == [5, 5, 6, 6, 7, 7, 7]
    split = described["candidates"][4]
    assert split["kernels"] == 2
    assert split["refused"] is None
    assert split["counts"] == {"matmul": 2, "exp": 1, "reduce_sum": 3, "div": 1}
    assert split["changes"] == [
        "splits L into s parts",
        "div %n behind matmul %o",
        "adds 2 reduce_sum",
    ]
    assert described["candidates"][5]["refused"].startswith("a computed tensor")


def test_what_stopped_the_search_is_said(capsys: pytest.CaptureFixture[str]):
    assert explain("--seconds", "0") == 0
    assert "The search was stopped by seconds=0." in capsys.readouterr().out


def test_the_ir_of_a_candidate(capsys: pytest.CaptureFixture[str]):
    assert explain("--ir", "2") == 0
    out = capsys.readouterr().out
    assert out.startswith("algebra.graph @mha_2")
    assert "algebra.div" in out


def test_numbers_become_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "exp.mlir"
    file.write_text("""
        algebra.graph @exp (%x: !algebra.tensor<[4, 8], f32>)
            -> (!algebra.tensor<[4, 1], f32>) {
          %y = algebra.reduce_sum %x dim 1
          algebra.return %y
        }""")
    assert main.main(["explain", str(file), "--split", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["candidates"][1]["changes"][0] == "splits d1 into s parts"


def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert explain("--picture", "2", "--out", str(tmp_path / "fig5a.x")) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "fig5a.svg")]
    root = ElementTree.parse(tmp_path / "fig5a.svg").getroot()
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert texts.count("matmul") == 2
    assert "result 0" in texts
    assert root.find(f"{SVG}style") is not None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--ir", "9"], "there is no candidate 9; there are 1 to 2"),
        (["--picture", "0"], "there is no candidate 0"),
        (["--extra", "-1"], "--extra is -1; it is a number of at least 0"),
        (["--seconds", "-1"], "--seconds is -1.0; it is a number of at least 0"),
        (["--seconds", "nan"], "--seconds is nan; it is a number of at least 0"),
        (["--out", "x.svg"], "--out says where to draw; it goes with --picture"),
        (["--ir", "1", "--json"], "not allowed with argument"),
    ],
)
def test_arguments_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], args: list[str], message: str
):
    assert explain(*args) == 1
    assert message in capsys.readouterr().err
