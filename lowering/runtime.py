"""
Compiled graphs: a built plan as one function of PyTorch tensors.

    compiled = load_compiled(load_built(folder))
    y = compiled(x, w)            # allocates y
    compiled(x, w, out=y)         # allocates nothing

All kernels run on PyTorch's current stream, without synchronizing, so a call can be
captured in a CUDA graph; call once before capturing, which loads the machine code. A
tensor that a kernel cannot take as it is (other shape, not contiguous, ...) is refused
with its name, never copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cleave.dialects.wording import counted
from cleave.lowering.binding import WORKSPACE_ALIGNMENT, Binding, Bindings
from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.hardware import hardware_for_arch
from cleave.lowering.kernel_library import NotRunnableError, load_library
from cleave.lowering.library_calls import library_call
from cleave.lowering.plan import LibraryCall, Plan

if TYPE_CHECKING:
    import torch

ALIGNMENT = 16
"""Bytes: what TMA and 16-byte loads ask of a tensor's address."""


class CompiledGraph:
    """
    A callable that hides how many kernels there are.

    `launches` has a function for each launch of the plan, which does it with the
    tensors it is given. The workspace is allocated here; where dims are dynamic, at the
    first call that needs more of it (`reserve` does so ahead). All calls share it: for
    calls that overlap on several streams, pass `workspace=`.
    """

    def __init__(
        self,
        plan: Plan,
        launches: Sequence[Callable[..., object]],
        device: torch.device,
    ) -> None:
        import torch

        # Kept: an import statement in each call would cost as much as a check.
        self._torch = torch
        self.plan = plan
        self.device = device
        self._launches = tuple(launches)
        self._bindings = Bindings(plan)
        self._names = tuple(plan.tensors)
        self._dtypes: tuple[torch.dtype, ...] = tuple(
            getattr(torch, spec.dtype) for spec in plan.tensors.values()
        )
        self._masks = tuple(
            i for i, spec in enumerate(plan.tensors.values()) if spec.dtype == "bool"
        )
        self._parameters = tuple(
            tuple(self._names.index(arg.name) for arg in launch.args)
            for launch in plan.launches
        )
        self._workspace: torch.Tensor | None = None
        self._last_temporaries: (
            tuple[Binding, torch.Tensor, list[torch.Tensor]] | None
        ) = None
        if not self._bindings.names:
            self.reserve()

    def __call__(
        self,
        *args: torch.Tensor,
        out: torch.Tensor | Sequence[torch.Tensor] | None = None,
        workspace: torch.Tensor | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """
        Run the graph on contiguous tensors of this device, as the plan's `args` say.

        Returns the result, or a tuple of several; with `out`, the tensors given there.
        `workspace` is a uint8 tensor of at least `workspace_bytes(...)`. Raises
        TypeError or ValueError for a tensor that does not fit, naming it.
        """
        self._require_tensors(args, "argument", 0, len(self.plan.args))
        binding = self._bindings.of_shapes([tensor.shape for tensor in args])
        tensors = [
            self._fitting(tensor, i, binding, "argument")
            for i, tensor in enumerate(args)
        ]
        if out is None:
            results = self._new_results(binding)
            tensors += results
        else:
            results = [out] if isinstance(out, self._torch.Tensor) else list(out)
            tensors += self._fitting_out(results, binding, tensors)
        tensors += self._temporaries(binding, workspace)
        for i in self._masks:
            # The same memory under the dtype that kernels know it by.
            tensors[i] = tensors[i].view(self._torch.int8)
        with self._device_kept():
            for launch, parameters, views in zip(
                self._launches, self._parameters, binding.views, strict=True
            ):
                launch(
                    *(
                        tensors[i] if view is None else tensors[i].view(view)
                        for i, view in zip(parameters, views, strict=True)
                    )
                )
        return results[0] if len(results) == 1 else tuple(results)

    def workspace_bytes(self, **sizes: int) -> int:
        """Bytes of workspace for these sizes of the dynamic dims (KeyError: which?)."""
        return self._of_sizes(sizes).workspace_bytes

    def reserve(self, **sizes: int) -> None:
        """Allocate the workspace that calls with these sizes will need."""
        self._grown_workspace(self.workspace_bytes(**sizes))

    def poison_workspace(self, *args: torch.Tensor) -> None:
        """
        Fill the workspace of a call on these arguments with NaNs of every float type,
        so that a temporary that is read before it is written shows.
        """
        binding = self._bindings.of_shapes([tensor.shape for tensor in args])
        self._grown_workspace(binding.workspace_bytes).fill_(0xFF)

    def _of_sizes(self, sizes: dict[str, int]) -> Binding:
        return self._bindings.of_sizes(tuple(sizes[n] for n in self._bindings.names))

    def _require_tensors(
        self, tensors: Sequence[object], role: str, first: int, count: int
    ) -> None:
        names = self._names[first : first + count]
        if len(tensors) != count:
            raise TypeError(
                f"{self.plan.name} takes {counted(count, 'tensor')} as {role} "
                f"({', '.join(names)}), not {len(tensors)}"
            )
        for tensor, name in zip(tensors, names, strict=True):
            if not isinstance(tensor, self._torch.Tensor):
                raise TypeError(
                    f"{role} {name}: a torch.Tensor is expected, "
                    f"not {type(tensor).__name__}"
                )

    def _fitting(
        self, tensor: torch.Tensor, i: int, binding: Binding, role: str
    ) -> torch.Tensor:
        """The tensor as kernels take it. Raises with role and name if they cannot."""
        where = f"{role} {self._names[i]}"
        shape, strides = binding.shapes[i], binding.strides[i]
        if tensor.shape != shape:
            raise ValueError(f"{where}: {list(tensor.shape)}, expected {list(shape)}")
        if tensor.dtype != self._dtypes[i]:
            raise TypeError(f"{where}: {tensor.dtype}, expected {self._dtypes[i]}")
        if tensor.device != self.device:
            raise ValueError(f"{where}: on {tensor.device}, expected {self.device}")
        if tensor.requires_grad:
            if self._torch.is_grad_enabled():
                raise ValueError(
                    f"{where}: requires grad, and a compiled graph has no backward; "
                    "call it under torch.no_grad()"
                )
            tensor = tensor.detach()
        if tensor.stride() != strides:
            if not tensor.is_contiguous():
                raise ValueError(
                    f"{where}: not contiguous (strides {list(tensor.stride())}); "
                    "pass a contiguous copy"
                )
            # Contiguous but for the strides of dims of size 1, which mean nothing.
            tensor = tensor.as_strided(shape, strides)
        if tensor.data_ptr() % ALIGNMENT:
            raise ValueError(
                f"{where}: its address is no multiple of {ALIGNMENT} bytes; "
                "pass a copy instead of a view"
            )
        return tensor

    def _new_results(self, binding: Binding) -> list[torch.Tensor]:
        first = len(self.plan.args)
        return [
            self._torch.empty(
                binding.shapes[i], dtype=self._dtypes[i], device=self.device
            )
            for i in range(first, first + len(self.plan.results))
        ]

    def _fitting_out(
        self,
        out: Sequence[torch.Tensor],
        binding: Binding,
        inputs: Sequence[torch.Tensor],
    ) -> list[torch.Tensor]:
        first = len(inputs)
        self._require_tensors(out, "out", first, len(self.plan.results))
        taken = {tensor.data_ptr(): i for i, tensor in enumerate(inputs)}
        results: list[torch.Tensor] = []
        for i, tensor in enumerate(out, first):
            results.append(self._fitting(tensor, i, binding, "out"))
            other = taken.setdefault(tensor.data_ptr(), i)
            if other != i and tensor.numel():
                raise ValueError(
                    f"out {self._names[i]}: the same memory as {self._names[other]}"
                )
        return results

    def _temporaries(
        self, binding: Binding, workspace: torch.Tensor | None
    ) -> list[torch.Tensor]:
        if not binding.temporaries:
            return []
        if workspace is None:
            workspace = self._grown_workspace(binding.workspace_bytes)
            last = self._last_temporaries
            if last is None or last[0] is not binding or last[1] is not workspace:
                made = self._made_temporaries(binding, workspace)
                self._last_temporaries = last = (binding, workspace, made)
            return last[2]
        if (
            workspace.dtype != self._torch.uint8
            or workspace.device != self.device
            or not workspace.is_contiguous()
            or workspace.numel() < binding.workspace_bytes
            or workspace.data_ptr() % WORKSPACE_ALIGNMENT
        ):
            raise ValueError(
                f"workspace: a contiguous uint8 tensor of {binding.workspace_bytes} "
                f"bytes on {self.device} is needed, at a multiple of "
                f"{WORKSPACE_ALIGNMENT} bytes"
            )
        return self._made_temporaries(binding, workspace)

    def _made_temporaries(
        self, binding: Binding, workspace: torch.Tensor
    ) -> list[torch.Tensor]:
        flat = workspace.view(-1)
        first = len(self.plan.args) + len(self.plan.results)
        return [
            flat[start:end].view(self._dtypes[i]).view(binding.shapes[i])
            for i, (start, end) in enumerate(binding.temporaries, first)
        ]

    def _grown_workspace(self, size: int) -> torch.Tensor:
        if self._workspace is None or self._workspace.numel() < size:
            self._workspace = self._torch.empty(
                size, dtype=self._torch.uint8, device=self.device
            )
        return self._workspace

    def _device_kept(self) -> contextlib.AbstractContextManager[object]:
        """A library makes its tensors' device current, and would leave it so."""
        cuda = self._torch.cuda
        if self.device.type == "cuda" and cuda.current_device() != self.device.index:
            return cuda.device(self.device)
        return contextlib.nullcontext()


def load_compiled(
    built: BuiltPlan, device: torch.device | None = None
) -> CompiledGraph:
    """
    Load a built plan for a CUDA device (the current one if None).

    Raises NotRunnableError if there is no such device, if it has another architecture
    than the plan was built for, or if TileLang's runtime is missing.
    """
    import torch

    if not torch.cuda.is_available():
        raise NotRunnableError("no CUDA device")
    # "cuda", without an index, is the device of no tensor.
    if device is None or device == torch.device("cuda"):
        device = torch.device("cuda", torch.cuda.current_device())
    capability = torch.cuda.get_device_capability(device)
    if capability != hardware_for_arch(built.arch).capability:
        raise NotRunnableError(
            f"{built.plan.name} was built for {built.arch}; {device} is a "
            f"{torch.cuda.get_device_name(device)}, sm_{capability[0]}{capability[1]}"
        )
    kernels = iter(built.kernels)
    launches = [
        library_call(launch)
        if isinstance(launch, LibraryCall)
        else load_library(next(kernels).library)
        for launch in built.plan.launches
    ]
    return CompiledGraph(built.plan, launches, device)
