"""
The process that runs candidates of one graph on the GPU: checks them, and times them.

Kernels may be wrong in ways that end a CUDA context, or never end. Requests name what
to `do`: "prepare" inputs and exact results of a graph, "check" a built candidate, or
"measure" several in turn. An answer with an `error` says in `at` which one it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.device import NoDeviceError, require_torch
from cleave.lowering.serving import LAST, Note, serve

if TYPE_CHECKING:
    from cleave.lowering.runtime import CompiledGraph


class Gpu(Protocol):
    """What runs candidates. Raises RuntimeError, ValueError or OSError."""

    def prepare(self, graph: str, number: int) -> None:
        """Draw inputs for a graph, as IR text, on this GPU. Raises NoDeviceError."""
        ...

    def check(self, folder: Path) -> NumericCheck:
        """Run a built plan and compare its results."""
        ...

    def measure(
        self, folders: Mapping[str, Path], repeats: int, note: Note
    ) -> dict[str, float]:
        """Milliseconds of plans by name, timed in turn; notes which one runs."""
        ...

    def works(self) -> bool:
        """Whether it runs anything any more after an error."""
        ...


class TorchGpu:
    """A CUDA device, by PyTorch."""

    def __init__(self) -> None:
        self._runnable: dict[Path, CompiledGraph] = {}

    def prepare(self, graph: str, number: int) -> None:
        require_torch()
        import torch

        from cleave.lowering.compilation.device_check import DeviceCheck
        from cleave.lowering.compilation.reduced_sizes import GraphSizes
        from cleave.lowering.numpy_algebra import ExecutionError
        from cleave.tools.graph_file import parse_graph

        torch.cuda.set_device(number)
        op = parse_graph(graph.encode(), "graph")
        try:
            self._device_check = DeviceCheck(op, GraphSizes.of(op).sizes)
        except ExecutionError as error:
            raise ValueError(f"@{op.graph_name}: {error}") from error

    def check(self, folder: Path) -> NumericCheck:
        return self._device_check.check(self._loaded(folder))

    def measure(
        self, folders: Mapping[str, Path], repeats: int, note: Note
    ) -> dict[str, float]:
        import torch

        from cleave.lowering.timing import time_alternating

        inputs = self._device_check.inputs
        calls: dict[str, Callable[[], object]] = {}

        def bound(name: str, runnable: CompiledGraph) -> Callable[[], object]:
            out = runnable(*inputs)
            # A fault shows here, and not when another plan has been noted.
            torch.cuda.synchronize()

            def call() -> object:
                # The GPU still waits: a note takes no time that is measured.
                note(name)
                return runnable(*inputs, out=out)

            return call

        for name, folder in folders.items():
            note(name)
            calls[name] = bound(name, self._loaded(folder))
        timings = time_alternating(calls, repeats=repeats)
        return {name: timing.median_ms for name, timing in timings.items()}

    def works(self) -> bool:
        import torch

        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def _loaded(self, folder: Path) -> CompiledGraph:
        if folder not in self._runnable:
            from cleave.lowering.built_plan import load_built
            from cleave.lowering.runtime import load_compiled

            self._runnable[folder] = load_compiled(load_built(folder))
        return self._runnable[folder]


class DeviceProcess:
    """Answers requests by a GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def __call__(self, request: dict[str, Any], note: Note) -> dict[str, Any]:
        at: str | None = None

        def noted(text: str) -> None:
            nonlocal at
            at = text
            note(text)

        try:
            return self._answer(request, noted)
        except NoDeviceError as error:
            return {"no_device": str(error), LAST: True}
        except (RuntimeError, ValueError, OSError) as error:
            text = next(iter(str(error).splitlines()), type(error).__name__)
            lasts = self._gpu.works()
            # Of memory that others have taken, there may be more the next time.
            is_lost = "out of memory" in text
            return {"error": text, "is_lost": is_lost, "at": at, LAST: not lasts}

    def _answer(self, request: dict[str, Any], note: Note) -> dict[str, Any]:
        match request["do"]:
            case "prepare":
                self._gpu.prepare(request["graph"], request["number"])
                return {}
            case "check":
                return {"check": self._gpu.check(Path(request["folder"])).literal()}
            case _:
                folders = {n: Path(each) for n, each in request["folders"].items()}
                times = self._gpu.measure(folders, request["repeats"], note)
                return {"times": times}


if __name__ == "__main__":
    # Its import takes seconds, in which others build what it is to run.
    import contextlib

    with contextlib.suppress(ImportError):
        import torch as torch

    raise SystemExit(serve(DeviceProcess(TorchGpu())))
