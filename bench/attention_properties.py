"""
What holds of attention without any tolerance, on any executor.

Each function runs a kernel several times and returns what is wrong, empty if nothing.
Inputs are those of a case (`attention_check.inputs_of`); results are compared by bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.attention_cases import AttentionCase
from bench.attention_check import Run
from bench.attention_reference import sees

if TYPE_CHECKING:
    import torch


def masked_keys_matter(
    case: AttentionCase, run: Run, inputs: Sequence[torch.Tensor], key: int
) -> list[str]:
    """Rows that do not see a key must not change with it, and the others must."""
    q, k, v, *bias = inputs
    seen = sees(case.kernel, case.queries, case.keys, q.device)[:, key]
    before = run(q, k, v, *bias)
    changed_k, changed_v = k.clone(), v.clone()
    changed_k[:, :, key], changed_v[:, :, key] = 100.0, -5.0
    after = run(q, changed_k, changed_v, *bias)
    wrong: list[str] = []
    if not _same([x[:, :, ~seen] for x in before], [x[:, :, ~seen] for x in after]):
        wrong.append(f"{case.name}: key {key} changes rows that do not see it")
    if seen.any() and _same(
        [x[:, :, seen] for x in before], [x[:, :, seen] for x in after]
    ):
        wrong.append(f"{case.name}: key {key} changes no row that sees it")
    return wrong


def hidden_keys_matter(
    case: AttentionCase, run: Run, inputs: Sequence[torch.Tensor], key: int, row: int
) -> list[str]:
    """A key hidden by a bias changes nothing, a row that sees none gives 0 and -inf."""
    import torch

    q, k, v, bias = (tensor.clone() for tensor in inputs)
    bias[:, key] = bias[row] = -float("inf")
    before = run(q, k, v, bias)
    k[:, :, key], v[:, :, key] = 100.0, -5.0
    wrong: list[str] = []
    if not _same(before, run(q, k, v, bias)):
        wrong.append(f"{case.name}: key {key} matters although the bias is -inf there")
    rows = torch.arange(case.queries, device=q.device) == row
    return wrong + _not_empty(case, before, rows)


def rows_without_keys(
    case: AttentionCase, run: Run, inputs: Sequence[torch.Tensor]
) -> list[str]:
    """Rows that see no key give 0, and -inf for the log-sum-exp; the others do not."""
    q = inputs[0]
    seen = sees(case.kernel, case.queries, case.keys, q.device).any(1)
    results = run(*inputs)
    wrong = _not_empty(case, results, ~seen)
    if not results[1][:, :, seen].isfinite().all():
        wrong.append(f"{case.name}: a row that sees keys has no log-sum-exp")
    return wrong


def one_key_is_its_value(
    case: AttentionCase, run: Run, inputs: Sequence[torch.Tensor]
) -> list[str]:
    """With a window of 1, a row gives the value of its key, bit by bit."""
    v = inputs[2]
    o = run(*inputs)[0]
    first = case.keys - case.queries
    expected = v[:, :, first:].expand_as(o).to(o.dtype)
    return [] if o.equal(expected) else [f"{case.name}: one key is not its value"]


def nans_spread(
    case: AttentionCase, run: Run, inputs: Sequence[torch.Tensor], row: int, key: int
) -> list[str]:
    """NaNs of a query are NaNs of its row; those of a key, of the rows that see it."""
    import torch

    q, k, v, *bias = (tensor.clone() for tensor in inputs)
    rows = torch.arange(case.queries, device=q.device) == row
    q[:, :, row, 0] = torch.nan
    wrong = _not_nan(f"{case.name}: query {row}", run(q, k, v, *bias), rows)
    q, k = inputs[0], k.clone()
    k[:, :, key, 0] = torch.nan
    seen = sees(case.kernel, case.queries, case.keys, q.device)[:, key]
    return wrong + _not_nan(f"{case.name}: key {key}", run(q, k, v, *bias), seen)


def _not_nan(
    what: str, results: Sequence[torch.Tensor], rows: torch.Tensor
) -> list[str]:
    if any(not result[:, :, rows].isnan().all() for result in results):
        return [f"{what} is NaN, and a row that needs it is not"]
    if any(result[:, :, ~rows].isnan().any() for result in results):
        return [f"{what} is NaN, and so is a row that does not need it"]
    return []


def permuting_the_batch(
    case: AttentionCase, run: Run, inputs: Sequence[torch.Tensor]
) -> list[str]:
    """Permuting the heads of keys permutes the results."""
    import torch

    q, k, v, *bias = inputs
    order = torch.arange(q.shape[0], device=q.device).roll(1)
    results = [result[order] for result in run(q, k, v, *bias)]
    permuted = run(*(tensor[order].contiguous() for tensor in (q, k, v)), *bias)
    same = _same(results, permuted)
    return [] if same else [f"{case.name}: heads depend on their position"]


def _not_empty(
    case: AttentionCase, results: Sequence[torch.Tensor], rows: torch.Tensor
) -> list[str]:
    o, lse = (result[:, :, rows] for result in results)
    if (o == 0).all() and (lse == -float("inf")).all():
        return []
    return [f"{case.name}: rows that see no key are not 0, with -inf"]


def _same(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
    return all(x.equal(y) for x, y in zip(a, b, strict=True))
