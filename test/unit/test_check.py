"""Checks of numbers on the CPU, with Python functions in the place of kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from numpy.typing import NDArray  # noqa: E402
from torch import Tensor  # noqa: E402

from cleave.lowering.check import (  # noqa: E402
    ResultCheck,
    check_on_device,
    from_numpy,
    random_inputs,
)
from cleave.lowering.plan import Plan  # noqa: E402
from cleave.lowering.runtime import CompiledGraph  # noqa: E402

CPU = torch.device("cpu")

LITERAL: dict[str, Any] = {
    "name": "double",
    "args": [{"name": "x", "shape": ["M", 8], "dtype": "float16"}],
    "results": [{"name": "y", "shape": ["M", 8], "dtype": "float32"}],
    "temporaries": [{"name": "t", "shape": ["M", 8], "dtype": "float32"}],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["x", "t", "y"],
            "pass_configs": {},
            "requires": [],
        }
    ],
    "sizes": {},
}
PLAN = Plan.parse(LITERAL)
INPUTS = random_inputs(PLAN, CPU, seed=3, sizes={"M": 16})


def twice(x: Tensor) -> Tensor:
    assert x.dtype == torch.float64
    return 2 * x


def check(
    kernel: Callable[[Tensor, Tensor, Tensor], object],
    reference: Callable[..., Any] = twice,
) -> ResultCheck:
    compiled = CompiledGraph(PLAN, [kernel], CPU)
    (result,) = check_on_device(compiled, reference, INPUTS)
    return result


def double(x: Tensor, t: Tensor, y: Tensor) -> None:
    y.copy_(2 * x.float())


def test_a_right_kernel_passes() -> None:
    result = check(double)
    assert result == ResultCheck("y", 0.0, 0, True)
    assert result.reasons(1e-6) == []


def test_the_error_is_relative_to_the_reference() -> None:
    result = check(lambda x, t, y: y.copy_(2.02 * x.float()))
    assert result.error == pytest.approx(0.01, rel=1e-3)
    assert result.reasons(1e-2 * 1.01) == []
    (reason,) = result.reasons(1e-3)
    assert reason == "y: relative error 0.01, allowed 0.001"


def test_an_element_that_is_not_written_is_found() -> None:
    result = check(lambda x, t, y: y[:-1].copy_(2 * x[:-1].float()))
    assert result.wrong_elements == 8
    assert result.reasons(1.0) == ["y: 8 elements not finite or not written"]


def test_a_temporary_that_is_read_too_early_is_found() -> None:
    result = check(lambda x, t, y: y.copy_(2 * x.float() + t * 0))
    assert result.wrong_elements == 16 * 8


def test_a_race_is_found() -> None:
    runs = iter(range(3))
    result = check(lambda x, t, y: y.copy_(2 * x.float() + (next(runs) == 2) * 1e-6))
    assert not result.repeatable
    assert result.reasons(1e-3) == ["y: runs on equal inputs differ"]


def test_infinities_must_be_those_of_the_reference() -> None:
    def masked(x: Tensor) -> Tensor:
        return torch.where(torch.arange(16)[:, None] < 2, -torch.inf, 2 * x)

    assert check(lambda x, t, y: y.copy_(masked(x.float())), masked).reasons(1e-6) == []
    assert check(double, masked).wrong_elements == 16


def test_nothing_equals_a_reference_that_is_nan() -> None:
    def undefined(x: Tensor) -> Tensor:
        return torch.full_like(x, torch.nan)

    result = check(double, undefined)
    assert result.wrong_elements == 16 * 8


def test_a_reference_of_zeros_makes_the_error_absolute() -> None:
    result = check(lambda x, t, y: y.fill_(0.5), torch.zeros_like)
    assert result.error == pytest.approx(0.5 * (16 * 8) ** 0.5)


def test_a_kernel_that_writes_its_argument_is_refused() -> None:
    def careless(x: Tensor, t: Tensor, y: Tensor) -> None:
        double(x, t, y)
        x[0, 0] += 1

    with pytest.raises(ValueError, match="double changed its argument x"):
        check(careless)


def test_a_reference_in_numpy() -> None:
    def reference(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return 2 * x

    assert check(double, from_numpy(reference)).reasons(1e-6) == []


def test_the_reference_must_return_every_result() -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x

    compiled = CompiledGraph(PLAN, [double], CPU)
    with pytest.raises(ValueError, match="has 1 result, the reference returned 2"):
        check_on_device(compiled, reference, INPUTS)


def test_inputs_are_drawn_by_seed_and_scale() -> None:
    (x,) = random_inputs(PLAN, CPU, seed=5, sizes={"M": 512})
    (again,) = random_inputs(PLAN, CPU, seed=5, sizes={"M": 512})
    (other,) = random_inputs(PLAN, CPU, seed=6, sizes={"M": 512})
    (small,) = random_inputs(PLAN, CPU, seed=5, sizes={"M": 512}, scales={"x": 0.25})
    assert (x.shape, x.dtype) == ((512, 8), torch.float16)
    assert torch.equal(x, again)
    assert not torch.equal(x, other)
    torch.testing.assert_close(small, x / 4)
    assert float(x.float().std()) == pytest.approx(1, abs=0.05)


def test_indices_are_not_drawn() -> None:
    literal = {**LITERAL, "args": [{"name": "x", "shape": [4], "dtype": "int32"}]}
    literal["results"] = [{"name": "y", "shape": [4], "dtype": "float32"}]
    literal["temporaries"] = [{"name": "t", "shape": [4], "dtype": "float32"}]
    with pytest.raises(ValueError, match="argument x: no random int32 is drawn"):
        random_inputs(Plan.parse(literal), CPU, seed=0)
