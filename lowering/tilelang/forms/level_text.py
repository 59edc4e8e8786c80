"""The text of one level of a kernel in the form `pipelined` while it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cleave.lowering.tilelang.body import Body
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile, Spelling


@dataclass
class LevelText:
    """The body of a level, and the slices of tensors in GMEM that its iter is given."""

    number: int
    body: Body
    slices: dict[str, GlobalTile]
    loaded: list[GlobalTile] = field(default_factory=list[GlobalTile])
    """What is loaded into SMEM."""
    loaded_in_bulk: list[Buffer] = field(default_factory=list[Buffer])
    """Tiles in SMEM that TMA can load."""

    def end_reads(self, uses_wgmma: bool) -> None:
        """Say that a tile is read, behind the last statement in which threads do so."""
        statements = _statements(self.body.lines)
        for buffer in self.loaded_in_bulk:
            first = ", ".join("0" * len(buffer.kept)) or "0"
            readers = [
                number
                for number, statement in enumerate(statements)
                if _reads(statement, buffer.name, uses_wgmma)
            ]
            if readers:
                done = f"reads_done({buffer.name}[{first}])"
                statements.insert(readers[-1] + 1, [done])
        self.body.lines = [line for lines in statements for line in lines]

    @property
    def _others(self) -> list[str]:
        return [name for name in self.body.uses if name not in self.slices]

    @property
    def iter_params(self) -> list[str]:
        return [*self.slices, *self._others]

    def iter_args(self, spelling: Spelling) -> list[str]:
        slices = [tile.slice(spelling) for tile in self.slices.values()]
        return [*slices, *self._others]


def _statements(lines: Sequence[str]) -> list[list[str]]:
    """Each statement's lines."""
    statements: list[list[str]] = []
    for line in lines:
        if statements and (line.startswith((" ", ")")) or not line):
            statements[-1].append(line)
        else:
            statements.append([line])
    return statements


def _reads(statement: Sequence[str], tile: str, uses_wgmma: bool) -> bool:
    """Whether threads read a tile, or an inner loop that is given it may do so."""
    first = statement[0]
    is_asynchronous = first.startswith("T.gemm(") and uses_wgmma
    is_load = re.match(rf"T\.copy\(.*, {tile}\b", first) is not None
    if is_asynchronous or is_load:
        return False
    return any(re.search(rf"\b{tile}\b", line) for line in statement)
