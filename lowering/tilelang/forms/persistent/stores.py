"""How the consumers of a persistent kernel store their results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.dims import symbol
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.lowering.tilelang.body import Body
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile
from cleave.lowering.tilelang.forms.persistent.resources import staging_columns
from cleave.lowering.tilelang.forms.persistent.structure import Structure
from cleave.lowering.tilelang.text import indented

PART = "part"
"""The variable that counts the parts of a tile."""


@dataclass
class Stores:
    """
    Writes the stores of one kernel and makes the buffers that they need.

    A tile leaves through SMEM in parts, each as large as the SMEM that is left admits.
    A bulk copy takes a part from there while the consumers go on, until they need the
    buffer again.
    """

    structure: Structure
    body: Body
    meet: str
    """The statement at which consumers wait for each other."""
    smem_bytes: int
    """What is left for staging."""
    staging: dict[TensorType, Buffer] = field(default_factory=dict[TensorType, Buffer])
    """The buffer in SMEM of outputs of one type; they take turns."""
    pieces: dict[TensorType, Buffer] = field(default_factory=dict[TensorType, Buffer])
    """The registers of a part, rounded, where a tile has several parts."""

    def direct(self, source: Buffer, target: GlobalTile) -> list[str]:
        """From registers: a quad of threads has whole sectors of f32 elements."""
        return [f"T.copy({source.region}, {target.slice(self.body.spelling)})"]

    def through_smem(self, copy: Copy, target: GlobalTile) -> list[str]:
        type_ = copy.result_type
        columns, width = self._columns(type_), self._part_columns(type_)
        staging = self._buffer(self.staging, copy, width, copy.params["memory"])
        if width == columns:
            source = self.body.buffer_of(self.body.unrounded(copy.operands[0]))
            return self._handed_over(source.region, staging, target)
        piece = self._buffer(self.pieces, copy, width, Memory("rmem", "fragment"))
        offsets = target.tmap.offsets
        offset = offsets[-1] + symbol(PART) * width
        tmap = TMap((*offsets[:-1], offset), staging.dims)
        count = f"{self.body.spelling.dim(type_.dims[-1])} // {width}"
        part = [
            *self._piece_lines(copy, piece, width),
            *self._handed_over(piece.name, staging, replace(target, tmap=tmap)),
        ]
        return [f"for {PART} in T.unroll({count}):", *indented(part)]

    def _piece_lines(self, copy: Copy, piece: Buffer, width: int) -> list[str]:
        """A part of a tile, computed for itself: fewer registers at a time."""
        value = self.body.unrounded(copy.operands[0])
        if value in self.body.places:
            source = self.body.buffer_of(value).name
            columns = f"{PART} * {width} : ({PART} + 1) * {width}"
            return [f"T.copy({source}[:, {columns}], {piece.name})"]
        within = self.body.positions(copy.result_type.with_dims(piece.dims))
        whole = [*within[:-1], f"({PART} * {width} + {within[-1]})"]
        text = self.body.element(copy.operands[0], whole)
        return self.body.parallel(piece, piece.assignment(within, text))

    def _handed_over(
        self, source: str, staging: Buffer, target: GlobalTile
    ) -> list[str]:
        return [
            "T.tma_store_wait(0)",
            self.meet,
            f"T.copy({source}, {staging.name})",
            "T.fence_proxy_async()",
            self.meet,
            f"T.tma_copy({staging.name}, {target.slice(self.body.spelling)})",
        ]

    def last(self) -> list[str]:
        """After all tiles: SMEM stays until everything was taken from it."""
        return ["T.tma_store_wait(0)"] if self.staging else []

    # Parts

    def _buffer(
        self, held: dict[TensorType, Buffer], copy: Copy, width: int, memory: Memory
    ) -> Buffer:
        """The buffer of parts of this type and width, which is made once."""
        type_ = copy.result_type
        if type_ not in held:
            dims = (*type_.dims[:-1], width)
            kept = self.body.spelling.kept(dims)
            hint = copy.results[0].name_hint or "staged"
            name = self.body.names.fresh(hint)
            held[type_] = Buffer(name, dims, kept, type_.element_type, memory)
        return held[type_]

    def _columns(self, type_: TensorType) -> int:
        return cast(int, self.body.spelling.facts.resolve(type_.dims[-1]))

    def _part_columns(self, type_: TensorType) -> int:
        rows = cast(int, self.body.spelling.facts.resolve(type_.dims[-2]))
        types = {copy.result_type for copy in self.structure.staged}
        return staging_columns(
            self._columns(type_),
            rows,
            element_bytes(type_.element_type),
            self.structure.divides_rows,
            self.smem_bytes // len(types),
        )
