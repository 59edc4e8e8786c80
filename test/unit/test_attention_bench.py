"""What the attention benchmarks make of kernels and times, without a GPU."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from bench.attention_cases import AttentionCase, AttentionKernel, cases
from bench.attention_check import Checked
from bench.attention_reference import eager, exact
from bench.attention_safety import summary
from bench.attention_sweep import build, checked_rows, kernels_of, write
from bench.attention_variants import Candidate, candidates
from cleave.lowering.gate.rule import Judgement
from cleave.lowering.hardware import load_hardware
from cleave.lowering.toolchain import find_nvcc

SOFTCAP = AttentionKernel("f16", "softcap", 8, 8)


def test_each_kernel_is_built_for_all_sizes_and_for_those_of_one_case():
    kernels = kernels_of(cases())
    assert len(kernels) == 140
    assert len({kernel.name for kernel in kernels}) == 140
    bound = [kernel for kernel in kernels if kernel.is_bound]
    assert [len(kernel.cases) for kernel in bound] == [1] * 70
    sizes = {tuple((kernel.sizes or {}).values()) for kernel in bound}
    assert len(sizes) == 28
    numbers = [n for kernel in kernels if not kernel.is_bound for n, _ in kernel.cases]
    assert numbers == list(range(1960))


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_a_kernel_with_open_lengths_becomes_machine_code(tmp_path: Path):
    pytest.importorskip("tilelang")
    (open_lengths, *_) = kernels_of(cases())
    assert not open_lengths.is_bound
    build([open_lengths], tmp_path, load_hardware("h200"), None)
    assert open_lengths.reasons == []
    assert open_lengths.plan is not None


def test_a_kernel_that_was_not_built_has_no_right_case():
    kernel = kernels_of(cases())[0]
    kernel.reasons.append("does not fit")
    rows = list(checked_rows(kernel, None))
    assert len(rows) == 28
    assert not any(row["ok"] for row in rows)
    assert {tuple(row["reasons"]) for row in rows} == {("does not fit",)}


def test_rows_are_written_a_line_each(tmp_path: Path):
    rows = [{"case": "a", "ok": True}, {"case": "b", "ok": False}]
    path = tmp_path / "deep" / "sweep.json"
    write(path, {"cases": 2, "kernels": []}, rows)
    assert json.loads(path.read_text()) == {"cases": 2, "kernels": [], "rows": rows}
    assert '  {"case": "a", "ok": true},\n' in path.read_text()


def test_what_is_wrong_names_its_inputs_and_result():
    right = Judgement(0.1, 0.1, 0.2, 0, 0, 10)
    wrong = replace(right, error=0.3, exceeding=4)
    checked = Checked("amplitude 30", (right, wrong))
    assert not checked.is_right
    (reason,) = checked.reasons
    assert reason.startswith("amplitude 30: lse: 4 of 10 elements are off by up to 0.3")


def times(unsafe: float | None, safe: float | None, causal: float | None):
    variants = {"unsafe": unsafe, "safe": safe, "causal": causal}
    slower = [
        Candidate(variant, 64, (128, 64), 2, "pipelined", ms=ms and 2 * ms)  # pyright: ignore[reportArgumentType]
        for variant, ms in variants.items()
    ]
    fastest = [
        Candidate(variant, 64, (128, 128), 2, "pipelined", ms=ms)  # pyright: ignore[reportArgumentType]
        for variant, ms in variants.items()
    ]
    return summary([*slower, *fastest], 64, {"FA3": 1.0})


def test_the_fastest_of_each_variant_counts():
    row = times(1.0, 1.19, 0.7)
    assert row["ms"] == {"unsafe": 1.0, "safe": 1.19, "causal": 0.7}
    assert row["safe_cost"] == pytest.approx(0.19)
    assert row["safe_is_cheap"]
    assert row["causal_share"] == pytest.approx(0.7 / 1.19)
    assert row["causal_is_short"]
    assert not times(1.0, 1.21, 0.7)["safe_is_cheap"]
    assert not times(1.0, 1.0, 0.63)["causal_is_short"]


def test_a_bar_is_not_met_by_what_was_not_timed():
    row = times(None, 1.0, None)
    assert row["safe_cost"] is row["causal_share"] is None
    assert not row["safe_is_cheap"]
    assert not row["causal_is_short"]


def test_only_safe_variants_carry_a_reference():
    chosen = {c.variant: c for c in candidates() if c.form == "pipelined"}
    sources = {variant: c.source() for variant, c in chosen.items()}
    assert ["T.reduce_max" in sources[v] for v in ("unsafe", "safe", "causal")] == [
        False,
        True,
        True,
    ]
    assert "T.Select" in sources["causal"]


def test_the_references_know_softmax_masks_and_caps():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, heads, rows, 8, generator=generator, dtype=torch.float64)
        for heads, rows in ((3, 5), (1, 7), (1, 7))
    )
    scores = q @ k.mT / 8**0.5
    for kernel, logits in (
        (replace(SOFTCAP, mask="none"), scores),
        (replace(SOFTCAP, cap=2.0), 2 * (scores / 2).tanh()),
        (replace(SOFTCAP, mask="causal"), _hidden(scores, 7)),
        (replace(SOFTCAP, mask="window", window=3), _hidden(scores, 3)),
    ):
        o, lse = exact(kernel, [q, k, v])
        torch.testing.assert_close(o, logits.softmax(-1) @ v)
        torch.testing.assert_close(lse, logits.logsumexp(-1, keepdim=True))
        for result, same in zip(
            eager(kernel, [q, k, v], torch.float64), (o, lse), strict=True
        ):
            torch.testing.assert_close(result, same)


def _hidden(scores: torch.Tensor, window: int) -> torch.Tensor:
    """Row by row, what lies behind the diagonal or before the window."""
    hidden = scores.clone()
    for row in range(5):
        position = row + 2
        hidden[..., row, position + 1 :] = -float("inf")
        hidden[..., row, : max(0, position - window + 1)] = -float("inf")
    return hidden


def test_names_tell_cases_apart():
    case = AttentionCase(SOFTCAP, "GQA 9:3", 3, 799)
    assert case.name == "attention_f16_softcap_8_8_GQA9to3_3x799"
    assert replace(SOFTCAP, mask="window", window=1).name.endswith("window1_8_8")
