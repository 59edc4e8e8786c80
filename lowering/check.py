"""
Numbers before times: a compiled graph against a float64 reference, on its device.

Results and workspace hold NaNs before each run, so an element that no kernel writes and
a temporary that is read too early show up. Runs on equal inputs must agree bit by bit:
an error that moves is a race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cleave.dialects.wording import counted
from cleave.lowering.plan import Plan, evaluate_shape

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from cleave.lowering.runtime import CompiledGraph

    Tensors: TypeAlias = torch.Tensor | Sequence[torch.Tensor]
    Reference: TypeAlias = Callable[..., Tensors]


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """
    One result against its reference.

    `error` is ||out - ref|| / ||ref|| in the Frobenius norm, over the elements where
    both are finite. `wrong_elements` counts those that are not finite though the
    reference is, or miss an infinity of it. `repeatable` says if all runs agreed.
    """

    name: str
    error: float
    wrong_elements: int
    repeatable: bool

    def reasons(self, tolerance: float) -> list[str]:
        """Why the result is refused at this relative error; empty if it is right."""
        reasons: list[str] = []
        if self.wrong_elements:
            reasons.append(
                f"{self.name}: {counted(self.wrong_elements, 'element')} not finite or "
                "not written"
            )
        if not self.error <= tolerance:
            reasons.append(
                f"{self.name}: relative error {self.error:.3g}, allowed {tolerance:.3g}"
            )
        if not self.repeatable:
            reasons.append(f"{self.name}: runs on equal inputs differ")
        return reasons


def random_inputs(
    plan: Plan,
    device: torch.device,
    *,
    seed: int,
    sizes: Mapping[str, int] | None = None,
    scales: Mapping[str, float] | None = None,
) -> list[torch.Tensor]:
    """
    Normally distributed arguments, multiplied by the scale given for their name.

    `sizes` gives the dynamic dims. Raises ValueError for an argument that is not of a
    float type: indices and masks mean something and have to be made by the caller.
    """
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    inputs: list[torch.Tensor] = []
    for spec in plan.args:
        dtype: torch.dtype = getattr(torch, spec.dtype)
        if not dtype.is_floating_point:
            raise ValueError(f"argument {spec.name}: no random {spec.dtype} is drawn")
        shape = evaluate_shape(spec.shape, sizes or {})
        drawn = torch.randn(shape, generator=generator, device=device)
        inputs.append((drawn * (scales or {}).get(spec.name, 1.0)).to(dtype))
    return inputs


def check_on_device(
    compiled: CompiledGraph,
    reference: Reference,
    inputs: Sequence[torch.Tensor],
    *,
    runs: int = 3,
) -> list[ResultCheck]:
    """
    Run a compiled graph and compare each result with the reference.

    `reference` gets the inputs, those of a float type as float64, and returns the
    results in float64 on the same device; `from_numpy` makes one of a NumPy function.
    Raises ValueError if the graph changed an input.
    """
    expected = _as_tuple(reference(*[_exact(tensor) for tensor in inputs]))
    return check_against(compiled, expected, inputs, runs=runs)


def check_against(
    compiled: CompiledGraph,
    expected: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    *,
    runs: int = 3,
) -> list[ResultCheck]:
    """As `check_on_device`, with the results of the reference at hand."""
    import torch

    before = [tensor.clone() for tensor in inputs]
    first: list[torch.Tensor] = []
    repeatable = [True] * len(expected)
    for run in range(runs):
        results = [
            _poisoned(ref, spec.dtype) for ref, spec in _pairs(compiled, expected)
        ]
        compiled.poison_workspace(*inputs)
        compiled(*inputs, out=results)
        if run == 0:
            first = results
        for i, (result, earlier) in enumerate(zip(results, first, strict=True)):
            repeatable[i] &= torch.equal(_bits(result), _bits(earlier))
    for tensor, copy, spec in zip(inputs, before, compiled.plan.args, strict=True):
        if not torch.equal(_bits(tensor), _bits(copy)):
            raise ValueError(f"{compiled.plan.name} changed its argument {spec.name}")
    return [
        _compare(spec.name, result, ref, same)
        for result, (ref, spec), same in zip(
            first, _pairs(compiled, expected), repeatable, strict=True
        )
    ]


def from_numpy(
    function: Callable[..., Sequence[NDArray[Any]] | NDArray[Any]],
) -> Reference:
    """The reference that a function of NumPy arrays computes on the host."""

    def reference(*inputs: torch.Tensor) -> list[torch.Tensor]:
        import numpy as np
        import torch

        results = function(*[tensor.cpu().numpy() for tensor in inputs])
        arrays = [results] if isinstance(results, np.ndarray) else list(results)
        return [torch.tensor(array, device=inputs[0].device) for array in arrays]

    return reference


def _compare(
    name: str, result: torch.Tensor, reference: torch.Tensor, repeatable: bool
) -> ResultCheck:
    import torch

    out, ref = result.double(), reference.double()
    finite = out.isfinite() & ref.isfinite()
    # Right where both are finite, or where both are the same infinity.
    wrong = int((~finite & (out != ref)).sum())
    difference = float(torch.where(finite, out - ref, 0.0).square().sum()) ** 0.5
    size = float(torch.where(finite, ref, 0.0).square().sum()) ** 0.5
    error = difference / size if size else difference
    return ResultCheck(name, error, wrong, repeatable)


def _pairs(
    compiled: CompiledGraph, expected: Sequence[torch.Tensor]
) -> list[tuple[torch.Tensor, Any]]:
    """Each reference with the spec of its result; ValueError if they do not match."""
    results = compiled.plan.results
    if len(expected) != len(results):
        raise ValueError(
            f"{compiled.plan.name} has {counted(len(results), 'result')}, "
            f"the reference returned {len(expected)}"
        )
    return list(zip(expected, results, strict=True))


def _poisoned(reference: torch.Tensor, dtype_name: str) -> torch.Tensor:
    import torch

    dtype: torch.dtype = getattr(torch, dtype_name)
    flat = torch.empty(reference.numel(), dtype=dtype, device=reference.device)
    flat.view(torch.uint8).fill_(0xFF)
    return flat.view(reference.shape)


def _exact(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, so that NaNs compare equal to themselves."""
    import torch

    return tensor.reshape(-1).view(torch.uint8)


def _as_tuple(tensors: Tensors) -> tuple[torch.Tensor, ...]:
    import torch

    return (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
