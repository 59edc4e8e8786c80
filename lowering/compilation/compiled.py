"""`Compiled`: what `cleave.compile` returns."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleave.lowering.built_plan import load_built
from cleave.lowering.kernel_library import NotRunnableError
from cleave.lowering.search.report import SearchReport

if TYPE_CHECKING:
    import torch

    from cleave.lowering.runtime import CompiledGraph


class Compiled:
    """
    A compiled graph: a function of PyTorch tensors, and how it came about.

    `source` is the generated TileLang module, `stages` the IR text after each pass by
    its name (first the graph, as `input`), `report` what was chosen, checked and
    measured. `folder` holds all of that as files; it is the one that was asked for, or
    one that goes when this object does. `device` is the number of the GPU that kernels
    are loaded to at the first call, None where they cannot run.
    """

    def __init__(
        self,
        source: str,
        stages: Mapping[str, str],
        report: SearchReport,
        folder: Path,
        device: int | None,
    ) -> None:
        self.source = source
        self.stages = stages
        self.report = report
        self.folder = folder
        self._device = device
        self._runnable: CompiledGraph | None = None

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self.report.graph

    def __call__(
        self,
        *args: torch.Tensor,
        out: torch.Tensor | Sequence[torch.Tensor] | None = None,
        workspace: torch.Tensor | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """
        Run the graph on the current CUDA stream, without synchronizing.

        Args:
            args: the graph's inputs, in order: contiguous tensors of its shapes and
                element types on the device that was current at compilation.
            out: the tensor, or the sequence of several, to write the results into;
                they are allocated if it is None.
            workspace: `workspace_bytes()` bytes (uint8) for what kernels hand on; by
                default memory that this object owns, and all its calls share.
        Returns:
            The result, or a tuple of several.
        Raises:
            NotRunnableError: compiled where there was no GPU.
            TypeError, ValueError: a tensor that does not fit; the message names it.
        """
        return self._required()(*args, out=out, workspace=workspace)

    def workspace_bytes(self, **sizes: int) -> int:
        """Bytes of workspace of a call with these sizes of the dynamic dims."""
        return self._required().workspace_bytes(**sizes)

    def json(self) -> dict[str, Any]:
        """The report with all texts, as JSON takes it."""
        return {
            **self.report.json(),
            "kernel_source": self.source,
            "stages": dict(self.stages),
        }

    def _required(self) -> CompiledGraph:
        if self._runnable is None:
            if self._device is None:
                raise NotRunnableError(
                    f"@{self.name} was compiled, but cannot run here: "
                    f"{self.report.not_measured}"
                )
            # PyTorch takes seconds to import, and not everybody calls what is compiled.
            import torch

            from cleave.lowering.runtime import load_compiled

            device = torch.device("cuda", self._device)
            self._runnable = load_compiled(load_built(self.folder), device)
        return self._runnable

    def __repr__(self) -> str:
        runs = self.report.device or "not runnable here"
        return f"<Compiled @{self.name}: {self.report.choice}; {runs}>"


class NotKeptError(OSError):
    """What was compiled, and a folder that its files could not be written into."""

    def __init__(self, compiled: Compiled, folder: Path, error: OSError) -> None:
        reason = f"{error.strerror or error}; of what was compiled, no file is there"
        super().__init__(error.errno or errno.EIO, reason, str(folder))
        self.compiled = compiled
