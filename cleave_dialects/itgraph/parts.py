"""
The parts that kernels and loops are built from and read as, in Python.

    views = [View(q, TMap((i * BM, 0), (BM, D)), name="tq"), View.whole(k, name="gk")]
    body = entry_block(views)           # one block argument a view, of its tile's type
    ...                                 # add operators on body.args, then a terminator
    outs = [Output((i * BM, 0), TensorType((M, D), f16))]
    kernel = KernelOp([Range("i", 0, ceildiv(M, BM))], views, outs, body)

    states = [State("sum", zero, name="l")]
    body = entry_block(views, states)   # then one block argument a state
    body.add_ops([..., NextOp([Contribution(row_sums, rescale=w)])])
    loop = LoopOp(Range("j", 0, ceildiv(L, BL)), views, states, body)

`kernel.views`, `loop.states`, ... give back the same parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Block, SSAValue

from cleave.dialects.itgraph.attributes import StateKind
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.tmap import Shape, TMap
from cleave.dialects.tensor import TensorType


def tensor_type(value: SSAValue) -> TensorType:
    """The type of a value that an operand definition constrains to tensors."""
    return cast(TensorType, value.type)


@dataclass(frozen=True)
class View:
    """
    A tile of a tensor, a new block argument of its level.

    `gathers` has an index vector (rank 1, i32 or i64, as long as the tile) for each dim
    that the tmap gathers.
    """

    source: SSAValue
    tmap: TMap
    gathers: tuple[SSAValue, ...] = ()
    memory: Memory | None = None
    name: str | None = None

    @classmethod
    def whole(
        cls, source: SSAValue, memory: Memory | None = None, name: str | None = None
    ) -> View:
        """All of a tensor: under a new name, to be sliced by inner levels."""
        return cls(source, TMap.whole(tensor_type(source).dims), (), memory, name)

    @property
    def type(self) -> TensorType:
        """The type of the block argument: the tile, with the tensor's elements."""
        return tensor_type(self.source).with_dims(self.tmap.tile)

    @property
    def is_whole(self) -> bool:
        return self.tmap.is_whole(tensor_type(self.source).dims)


@dataclass(frozen=True)
class Let:
    """`name = table[index]`: an integer read from a tensor, for bounds and offsets."""

    name: str
    table: SSAValue
    index: Shape


@dataclass(frozen=True)
class Output:
    """A result of a kernel: its type, and where an iteration's tile begins in it."""

    offsets: Shape
    type: TensorType


@dataclass(frozen=True)
class State:
    """
    A value that a loop builds up, a block argument and a result of the loop.

    kind     after an iteration gave v
    carry    state = v; only this kind may be read in the loop
    sum      state = state * rescale + v, or state + v
    max      state = max(state, v)
    tiles    state[offsets : offsets + shape of v] = v; no element is written twice
    """

    kind: StateKind
    initial: SSAValue
    offsets: Shape = ()
    """Of `tiles`: where the tile of an iteration begins."""
    memory: Memory | None = None
    name: str | None = None


@dataclass(frozen=True)
class Contribution:
    """What an iteration gives to a state; `rescale` only for `sum`, and broadcast."""

    value: SSAValue
    rescale: SSAValue | None = None


def entry_block(views: Sequence[View], states: Sequence[State] = ()) -> Block:
    """The block of a body: an argument for each view, then for each state of a loop."""
    types = [*(view.type for view in views), *(state.initial.type for state in states)]
    block = Block(arg_types=types)
    for argument, part in zip(block.args, (*views, *states), strict=True):
        argument.name_hint = part.name
    return block
