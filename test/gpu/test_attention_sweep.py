"""
A sample of the attention sweep on a GPU, and what holds there without tolerance:
`pytest test/gpu/test_attention_sweep.py`, in about three minutes on 16 cores.

All of it is `python -m bench.attention_sweep`.
"""

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from torch import Tensor  # noqa: E402

from bench.attention_cases import (  # noqa: E402
    ELEMENTS,
    MASKS,
    AttentionCase,
    AttentionKernel,
    Element,
    Mask,
    cases,
)
from bench.attention_check import (  # noqa: E402
    ALWAYS,
    IN_TURN,
    check,
    families_of,
    inputs_of,
)
from bench.attention_properties import (  # noqa: E402
    hidden_keys_matter,
    masked_keys_matter,
    nans_spread,
    one_key_is_its_value,
    permuting_the_batch,
    rows_without_keys,
)
from bench.attention_sweep import Built, DeviceRun, build, kernels_of  # noqa: E402
from cleave.lowering.hardware import current_hardware  # noqa: E402
from cleave.lowering.runtime import load_compiled  # noqa: E402

RunOf = Callable[[AttentionCase], DeviceRun]

DEVICE = torch.device("cuda", torch.cuda.current_device())
A_KERNEL = 3
"""Cases of each of the 70 kernels."""


def _sampled() -> list[tuple[int, AttentionCase]]:
    """The same cases each time: lengths and heads take turns from kernel to kernel."""
    sampled: list[tuple[int, AttentionCase]] = []
    for number, kernel in enumerate(k for k in kernels_of(cases()) if not k.is_bound):
        count = len(kernel.cases)
        sampled += [
            kernel.cases[(9 * number + turn * count // A_KERNEL) % count]
            for turn in range(A_KERNEL)
        ]
    return sampled


SAMPLED = _sampled()
ONE_KEY = [AttentionKernel(element, "window", 72, 72, 1) for element in ELEMENTS]


@pytest.fixture(scope="session")
def run_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> RunOf:
    """The kernels, built at once; a test that needs one that was refused fails."""
    listed = [case for _, case in SAMPLED]
    listed += [AttentionCase(kernel, "MHA", 1, 1) for kernel in ONE_KEY]
    kernels = [kernel for kernel in kernels_of(listed) if not kernel.is_bound]
    folder = tmp_path_factory.mktemp("attention")
    build(kernels, folder, current_hardware(), None)
    built: dict[str, Built] = {kernel.name: kernel for kernel in kernels}

    def run(case: AttentionCase) -> DeviceRun:
        kernel = built[case.kernel.name]
        assert kernel.plan is not None, kernel.reasons
        return DeviceRun(load_compiled(kernel.plan, DEVICE))

    return run


@pytest.mark.parametrize(
    ("number", "case"), SAMPLED, ids=lambda value: getattr(value, "name", None)
)
def test_attention_is_right(number: int, case: AttentionCase, run_of: RunOf) -> None:
    run = run_of(case)
    inputs = inputs_of(case, families_of(case, number), DEVICE, seed=number)
    assert "amplitude 1" in inputs
    for family, tensors in inputs.items():
        assert check(case, run, family, tensors).reasons == []
    assert all(run.repeatable)


def drawn(case: AttentionCase, family: str = "amplitude 3") -> list[Tensor]:
    return inputs_of(case, [family], DEVICE)[family]


def case_of(
    element: Element, mask: Mask, heads: str, queries: int, keys: int
) -> AttentionCase:
    return AttentionCase(AttentionKernel(element, mask, 72, 72), heads, queries, keys)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("mask", ["causal", "window"])
@pytest.mark.parametrize("lengths", [(300, 500), (500, 300), (1024, 1024)])
def test_masked_keys_and_values_change_nothing(
    element: Element, mask: Mask, lengths: tuple[int, int], run_of: RunOf
) -> None:
    case = case_of(element, mask, "GQA 9:3", *lengths)
    for key in (3, 170, lengths[1] - 1):
        assert not masked_keys_matter(case, run_of(case), drawn(case), key)


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_key_hidden_by_a_bias_changes_nothing(
    element: Element, run_of: RunOf
) -> None:
    case = case_of(element, "bias", "MQA", 203, 301)
    assert not hidden_keys_matter(case, run_of(case), drawn(case), key=170, row=5)


@pytest.mark.parametrize("kernel", ONE_KEY, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("family", [*ALWAYS, *IN_TURN])
def test_one_visible_key_gives_its_value(
    kernel: AttentionKernel, family: str, run_of: RunOf
) -> None:
    case = AttentionCase(kernel, "GQA 32:8", 301, 403)
    assert not one_key_is_its_value(case, run_of(case), drawn(case, family))


@pytest.mark.parametrize("mask", ["causal", "window"])
@pytest.mark.parametrize("lengths", [(500, 20), (513, 300), (2048, 1024)])
def test_rows_that_see_nothing_give_0(
    mask: Mask, lengths: tuple[int, int], run_of: RunOf
) -> None:
    case = case_of("f16", mask, "MHA", *lengths)
    assert not rows_without_keys(case, run_of(case), drawn(case))


@pytest.mark.parametrize("mask", MASKS)
def test_permuting_the_batch_permutes_the_results(mask: Mask, run_of: RunOf) -> None:
    case = case_of("bf16", mask, "GQA 9:3", 333, 500)
    assert not permuting_the_batch(case, run_of(case), drawn(case))


@pytest.mark.parametrize("mask", MASKS)
def test_nans_spread_to_the_rows_that_need_them(mask: Mask, run_of: RunOf) -> None:
    case = case_of("f16", mask, "GQA 9:3", 333, 500)
    assert not nans_spread(case, run_of(case), drawn(case), row=217, key=300)
