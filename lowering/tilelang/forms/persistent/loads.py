"""What the producer of a persistent kernel loads, and where to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cleave.dialects.algebra.dtypes import stored_name
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile, Spelling
from cleave.lowering.tilelang.text import Names


@dataclass(frozen=True)
class Ring(Buffer):
    """A tile for each stage; statements mean that of the stage in scope."""

    stage: str = "stage"
    """The variable that says which one it is."""

    @property
    def region(self) -> str:
        return f"{self.name}[{', '.join([self.stage, *':' * len(self.kept)])}]"

    def at(self, positions: Sequence[str]) -> str:
        indices = [self.stage, *(positions[axis] for axis in self.kept)]
        return f"{self.name}[{', '.join(indices)}]"

    def ring_allocation(self, stages: str, spelling: Spelling) -> str:
        """Memory for all stages."""
        shape = ", ".join([stages, *spelling.extents(self.dims)])
        return f'{self.name} = T.alloc_shared(({shape}), "{stored_name(self.element)}")'


@dataclass
class Loads:
    """Bulk copies that report to one barrier; a macro is given what they copy."""

    spelling: Spelling
    names: Names
    barrier: str
    lines: list[str] = field(default_factory=list[str])
    slices: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, tile: GlobalTile, buffer: Buffer) -> None:
        name = self.names.fresh(f"g_{buffer.name}")
        self.slices[name] = tile.slice(self.spelling)
        self.lines.append(
            f"T.tma_copy({name}, {buffer.region}, barrier={self.barrier})"
        )
