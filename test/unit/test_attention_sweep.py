"""
The attention sweep on reduced shapes in NumPy, and what holds exactly.

Every kernel of the sweep is scheduled, with its lengths left open and bound; each then
runs on lengths and numbers of heads that take turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from bench.attention_cases import (
    ELEMENTS,
    HEADS,
    LENGTHS,
    MASKS,
    AttentionCase,
    AttentionKernel,
    Element,
    Mask,
    cases,
    kernels,
)
from bench.attention_check import (
    ALWAYS,
    IN_TURN,
    check,
    families_of,
    inputs_of,
    program_of,
)
from bench.attention_properties import (
    hidden_keys_matter,
    masked_keys_matter,
    nans_spread,
    one_key_is_its_value,
    permuting_the_batch,
    rows_without_keys,
)
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.pipeline import TileProgram
from cleave.lowering.generated import GeneratedModule, load_generated
from cleave.lowering.numpy_itgraph import execute_plan
from cleave.lowering.numpy_modules import execute_module

CPU = torch.device("cpu")
WINDOW = 20
REDUCED_DIMS = {64: 16, 72: 24, 80: 40, 96: 32, 128: 48, 192: 64, 256: 80}
"""Head dims, those that tensor cores take and those that need padding."""
REDUCED_LENGTHS = ((1, 1), (3, 49), (14, 27), (31, 32), (32, 31), (64, 32), (33, 33))
"""With tiles of 32 queries and 16 keys, like `LENGTHS` with 128 and 64."""
REDUCED_HEADS = {"MHA": (2, 1), "GQA 9:3": (2, 3), "GQA 32:8": (2, 4), "MQA": (1, 3)}
TILES = {"N": 1, "G": 1, "M": 32}


@dataclass(frozen=True)
class ReducedKernel(AttentionKernel):
    """A kernel of the sweep with small head dims and tiles."""

    def configuration(self, sizes: Mapping[str, int] | None = None) -> Configuration:
        tile = dict(TILES)
        for name, dim in (("D", self.qk_dim), ("E", self.v_dim)):
            if dim % 16:
                tile[name] = dim + -dim % 16
        if sizes is not None and sizes["L"] <= 16:
            return Configuration({**tile, "L": 16}, {})
        return Configuration(tile, {"L": 16})


class ReducedCase(AttentionCase):
    """A case of the sweep with fewer heads."""

    @property
    def sizes(self) -> dict[str, int]:
        key_heads, group = REDUCED_HEADS[self.heads]
        return {"N": key_heads, "G": group, "M": self.queries, "L": self.keys}


def reduced(kernel: AttentionKernel) -> ReducedKernel:
    dims = REDUCED_DIMS[kernel.qk_dim], REDUCED_DIMS[kernel.v_dim]
    return ReducedKernel(kernel.element, kernel.mask, *dims, window=WINDOW)


@dataclass(frozen=True)
class Run:
    """
    A kernel on the sizes of a case, in NumPy: its tile program, or the TileLang that
    was printed for it. Its lengths are open, or bound to those of the case.
    """

    case: AttentionCase
    how: Literal["tiles", "text", "bound text"] = "text"

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        arrays = [tensor.double().numpy() for tensor in inputs]
        sizes = self.case.sizes
        kernel = self.case.kernel
        if self.how == "tiles":
            plan = program_for(kernel).plan
            with np.errstate(all="ignore"):
                results = execute_plan(plan, arrays, sizes, "rounded", order="random")
        else:
            bound = tuple(sizes.items()) if self.how == "bound text" else ()
            results = execute_module(module_of(kernel, bound), arrays, sizes)
        return [torch.tensor(result.astype(np.float64)) for result in results]


@cache
def program_for(
    kernel: AttentionKernel, bound: tuple[tuple[str, int], ...] = ()
) -> TileProgram:
    return program_of(kernel, dict(bound) or None)


@cache
def module_of(
    kernel: AttentionKernel, bound: tuple[tuple[str, int], ...]
) -> GeneratedModule:
    text = program_for(kernel, bound).source(fast_math=False)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "module.py"
        path.write_text(text, encoding="utf-8")
        return load_generated(path)


SWEEP = list(enumerate(cases()))


def sampled() -> list[tuple[int, AttentionCase]]:
    """Two cases a kernel, of which each has other lengths and heads."""
    turns = len(HEADS) * len(LENGTHS)
    return [
        SWEEP[number * turns + (offset + 9 * number) % turns]
        for number in range(len(SWEEP) // turns)
        for offset in (0, 11)
    ]


def reduced_case(case: AttentionCase) -> AttentionCase:
    index = LENGTHS.index((case.queries, case.keys))
    queries, keys = REDUCED_LENGTHS[index]
    return ReducedCase(reduced(case.kernel), case.heads, queries, keys)


def test_the_sweep_has_every_combination_once():
    assert len(SWEEP) == len({case.name for _, case in SWEEP}) == 1960
    lengths = {(case.queries, case.keys) for _, case in sampled()}
    pairs = {(case.kernel.mask, case.heads) for _, case in sampled()}
    assert lengths == {*LENGTHS}
    assert pairs == {*product(MASKS, HEADS)}


@pytest.mark.parametrize(
    ("number", "case"), sampled(), ids=lambda value: getattr(value, "name", None)
)
def test_attention_is_right(number: int, case: AttentionCase):
    small = reduced_case(case)
    inputs = inputs_of(small, families_of(small, number), CPU, seed=number)
    assert "amplitude 1" in inputs
    for how in ("tiles", "text", "bound text"):
        for family, tensors in inputs.items():
            checked = check(small, Run(small, how), family, tensors)
            assert checked.reasons == [], how


@pytest.mark.parametrize("kernel", [*kernels()], ids=lambda kernel: kernel.name)
def test_every_kernel_is_scheduled_with_open_lengths(kernel: AttentionKernel):
    program = program_of(kernel)
    assert {"N", "G", "M", "L"} <= {*program.plan.symbol_names}
    text = program.source(fast_math=False)
    assert "T.dynamic" in text
    # The first tile that a window shows is worked out by the loading warps as well.
    assert ("annotate_producer_reg_dealloc(40)" in text) == (kernel.mask == "window")


################################################################################
# Without tolerance                                                            #
################################################################################


def random_inputs(
    case: AttentionCase, seed: int = 0, family: str = "amplitude 3"
) -> list[torch.Tensor]:
    return inputs_of(case, [family], CPU, seed)[family]


def small_case(
    element: Element,
    mask: Mask,
    heads: str,
    lengths: tuple[int, int],
    window: int = WINDOW,
) -> ReducedCase:
    kernel = ReducedKernel(element, mask, 24, 16, window=window)
    return ReducedCase(kernel, heads, *lengths)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("mask", ["causal", "window"])
@pytest.mark.parametrize("lengths", [(40, 50), (50, 20)])
def test_masked_keys_and_values_change_nothing(
    element: Element, mask: Mask, lengths: tuple[int, int]
):
    case = small_case(element, mask, "GQA 9:3", lengths)
    for key in (3, lengths[1] - 1):
        assert not masked_keys_matter(case, Run(case), random_inputs(case), key)


def test_a_key_hidden_by_a_bias_changes_nothing():
    case = small_case("f16", "bias", "MQA", (20, 40))
    assert not hidden_keys_matter(case, Run(case), random_inputs(case), key=7, row=5)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("family", [*ALWAYS, *IN_TURN])
def test_one_visible_key_gives_its_value(element: Element, family: str):
    case = small_case(element, "window", "GQA 32:8", (37, 53), window=1)
    inputs = random_inputs(case, family=family)
    assert not one_key_is_its_value(case, Run(case), inputs)


@pytest.mark.parametrize("mask", ["causal", "window"])
def test_rows_that_see_nothing_give_0(mask: Mask):
    case = small_case("f16", mask, "MHA", (70, 20))
    assert not rows_without_keys(case, Run(case), random_inputs(case))


@pytest.mark.parametrize("mask", MASKS)
def test_permuting_the_batch_permutes_the_results(mask: Mask):
    case = small_case("bf16", mask, "GQA 9:3", (33, 50))
    assert not permuting_the_batch(case, Run(case), random_inputs(case))


@pytest.mark.parametrize("mask", MASKS)
def test_nans_spread_to_the_rows_that_need_them(mask: Mask):
    case = small_case("f16", mask, "GQA 9:3", (40, 50))
    assert not nans_spread(case, Run(case), random_inputs(case), row=17, key=20)


def test_what_breaks_a_property_is_told():
    causal, plain = (small_case("f16", m, "MHA", (20, 40)) for m in ("causal", "none"))
    inputs = random_inputs(causal)
    assert masked_keys_matter(causal, Run(plain), inputs, 39)
    assert masked_keys_matter(causal, lambda *_: [inputs[0]] * 2, inputs, 3)

    biased = small_case("f16", "bias", "MHA", (20, 40))
    wrong = hidden_keys_matter(
        biased, lambda *x: Run(plain)(*x[:3]), random_inputs(biased), key=7, row=5
    )
    assert len(wrong) == 2

    short, other = (small_case("f16", m, "MHA", (40, 20)) for m in ("causal", "none"))
    assert rows_without_keys(short, Run(other), random_inputs(short))
    one = small_case("f16", "window", "MHA", (20, 40), window=1)
    assert one_key_is_its_value(one, Run(causal), inputs)

    def by_position(q: torch.Tensor, *others: torch.Tensor) -> list[torch.Tensor]:
        return [q + torch.arange(len(q))[:, None, None, None]]

    assert permuting_the_batch(causal, by_position, inputs)
    assert len(nans_spread(causal, Run(plain), inputs, row=3, key=39)) == 1
    finite = nans_spread(causal, lambda *_: [inputs[0]] * 2, inputs, row=3, key=9)
    assert len(finite) == 2
