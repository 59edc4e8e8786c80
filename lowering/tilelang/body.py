"""The statements of one level: what its `iter` macro does with its tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, cast

from xdsl.dialects.builtin import f32, i1
from xdsl.ir import Block, SSAValue

from cleave.dialects.algebra.constants import constant_value
from cleave.dialects.algebra.elementwise import Exp, Exp2
from cleave.dialects.algebra.operator import GUARDED, Operator, is_float
from cleave.dialects.dims import SymbolicDim
from cleave.dialects.itgraph.level import memory_of
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.parts import Contribution, State
from cleave.dialects.tensor import TensorType
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile, Spelling, number_text
from cleave.lowering.tilelang.differences import exponent
from cleave.lowering.tilelang.text import (
    VARIABLES,
    EmissionError,
    Names,
    grouped,
    indented,
    unparenthesized,
)
from cleave.passes.cost.liveness import is_part_of_reader

Place = Buffer | GlobalTile


@dataclass
class Body:
    """
    The statements of a level, the buffers they need, and the names from outside.

    An elementwise value with one reader, itself elementwise over the same tile, has no
    buffer: it is written as part of its reader's expression. So are generators.
    """

    block: Block
    spelling: Spelling
    names: Names
    warps: str
    """Which dim of matmul results the warpgroups divide, "rows" or "columns"."""
    places: dict[SSAValue, Place]
    """Where each value is that has a place of its own; shared by all levels."""
    matmul: Mapping[str, str] = field(default_factory=dict[str, str])
    """How a kernel form wants matmuls written (`Matmul.emit_tile`)."""
    columns: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])
    """For states that are sums over a dim which warpgroups divide: what each thread has
    of them, so that threads meet once behind the loop and not in each iteration."""
    lines: list[str] = field(default_factory=list[str])
    allocations: list[Buffer] = field(default_factory=list[Buffer])
    uses: dict[str, None] = field(default_factory=dict[str, None])
    """Names that the statements mention, in order of appearance."""

    # Buffers

    def new_buffer(
        self, value: SSAValue, memory: Memory, is_tf32: bool = False
    ) -> Buffer:
        type_ = cast(TensorType, value.type)
        buffer = Buffer(
            self.names.fresh(value.name_hint or "t"),
            type_.dims,
            self.spelling.kept(type_.dims),
            type_.element_type,
            memory,
            is_tf32=is_tf32,
        )
        self.allocations.append(buffer)
        self.places[value] = buffer
        return buffer

    def buffer_of(self, value: SSAValue) -> Buffer:
        """The buffer that holds a value; a generator gets one when it is asked for."""
        if value not in self.places:
            self._materialize(cast(Operator, value.owner))
        place = self.places[value]
        if isinstance(place, GlobalTile):
            raise EmissionError(
                f"tile of {place.tensor} is used where it was not loaded"
            )
        self.uses.update(dict.fromkeys(place.names))
        return place

    # Statements

    def emit(self, op: Operator) -> None:
        (result,) = op.results
        held = self.places.get(op.operands[0]) if op.KEEPS_ORDER else None
        if isinstance(held, Buffer):
            self.places[result] = held.reshaped(op.result_type.dims, self.spelling)
            return
        is_written_in_place = is_part_of_reader(op) or self._number(result) is not None
        if result in self.places or is_written_in_place:
            return
        self._materialize(op)

    def _materialize(self, op: Operator) -> None:
        (result,) = op.results
        if (state := self._accumulated_into(op)) is not None:
            self._accumulate(op, state)
            return
        if GUARDED in op.attributes:
            self._guarded(op)
            return
        if (target := self._combined_into(op)) is not None:
            operands = [self.buffer_of(operand) for operand in op.operands]
            self._whole_tile(op, operands, target, accumulate=True)
            return
        sources = [operand for operand in op.operands if operand in self.places]
        if isinstance(op, Copy) or (_only_rounds(op) and sources):
            source = self.buffer_of(self.unrounded(op.operands[0]))
            target = self.new_buffer(result, memory_of(result) or op.params["memory"])
            self.uses[target.name] = None
            self.lines.append(f"T.copy({source.region}, {target.name})")
            return
        memory = memory_of(result) or Memory("rmem", "linear")
        if op.ELEMENTWISE or op.IS_VIEW or not op.operands:
            # The operands first: an operand without a buffer may still need one.
            target_text = self.expression_lines(op, result, memory)
            self.lines += target_text
        else:
            operands = [self.buffer_of(operand) for operand in op.operands]
            target = self.new_buffer(result, memory)
            self._whole_tile(op, operands, target, accumulate=False)

    def expression_lines(
        self, op: Operator, result: SSAValue, memory: Memory
    ) -> list[str]:
        positions = self.positions(cast(TensorType, result.type))
        text = self._expression(op, positions)
        target = self.new_buffer(result, memory)
        return self.parallel(target, target.assignment(positions, text))

    def unrounded(self, value: SSAValue) -> SSAValue:
        """What a copy reads: it rounds by itself, so a rounding needs no buffer."""
        owner = value.owner
        if value in self.places or not isinstance(owner, Operator):
            return value
        return self.unrounded(owner.operands[0]) if _only_rounds(owner) else value

    def _whole_tile(
        self, op: Operator, operands: Sequence[Buffer], target: Buffer, accumulate: bool
    ) -> None:
        self.uses[target.name] = None
        if op.ON_TENSOR_CORES:
            for buffer in (*operands, target):
                self._require_matrix(op, buffer)
        params = {**self._params(op), "warps": self.warps, **self.matmul}
        if "dim" in params:
            if params["dim"] not in operands[0].kept:
                self._combine_single(op, operands[0], target, accumulate)
                return
            params["dim"] = operands[0].kept.index(params["dim"])
        regions = [buffer.region for buffer in operands]
        self.lines.append(op.emit_tile(regions, target.name, params, accumulate))

    def _combine_single(
        self, op: Operator, operand: Buffer, target: Buffer, accumulate: bool
    ) -> None:
        """A reduction over a dim of one element is that element."""
        positions = self._positions_over(target)
        value = operand.at(positions)
        if accumulate:
            value = combined(op.REDUCTION or "sum", target.at(positions), value)
        self.lines += self.parallel(target, f"{target.at(positions)} = {value}")

    def _require_matrix(self, op: Operator, buffer: Buffer) -> None:
        rank = len(buffer.dims)
        if buffer.kept != (rank - 2, rank - 1):
            dims = ", ".join(str(self.spelling.facts.resolve(d)) for d in buffer.dims)
            raise EmissionError(
                f"'{op.name}' op: tile [{dims}] is no matrix; tensor cores want more "
                "than 1 in the last two dims and a tile of 1 in every batch dim"
            )

    def _guarded(self, op: Operator) -> None:
        """
        A mask that most iterations do without: the tile is what it would be without the
        mask, and is written again under the condition that the mask is needed.
        """
        (result,) = op.results
        operand = op.operands[op.CLEAR_OPERAND]
        positions = self.positions(cast(TensorType, result.type))
        memory = memory_of(result) or Memory("rmem", "linear")
        held = self.places.get(operand)
        if not isinstance(held, Buffer) or not self._is_replaced_by(operand, result):
            text = self.element(operand, positions)
            held = self.new_buffer(result, memory)
            self.lines += self.parallel(held, held.assignment(positions, text))
        self.places[result] = held
        condition = self._condition(op)
        masked = self._expression_on(op, operand, held, positions)
        statement = self.parallel(held, held.assignment(positions, masked))
        self.lines += [f"if {condition}:", *indented(statement)]

    def _expression_on(
        self, op: Operator, operand: SSAValue, held: Buffer, positions: Sequence[str]
    ) -> str:
        """The expression of an operator that finds one of its operands in a buffer."""
        before = self.places.get(operand)
        self.places[operand] = held
        text = self._expression(op, positions)
        if before is None:
            del self.places[operand]
        else:
            self.places[operand] = before
        return text

    def _is_replaced_by(self, operand: SSAValue, result: SSAValue) -> bool:
        """Whether a value that nothing else reads can be overwritten by another."""
        is_computed = isinstance(operand.owner, Operator)
        same = operand.type == result.type and memory_of(operand) == memory_of(result)
        return is_computed and same and operand.has_one_use()

    def _condition(self, op: Operator) -> str:
        """That one of the dims by which a mask would be clear is not positive."""
        dims = op.clear_when() or ()
        for dim in dims:
            self.uses.update(dict.fromkeys(self.spelling.local_names(dim)))
        texts = [f"{self.spelling.dim(dim)} <= 0" for dim in dims]
        return texts[0] if len(texts) == 1 else f"T.Or({', '.join(texts)})"

    # Accumulation

    def _accumulated_into(self, op: Operator) -> Contribution | None:
        """The loop state that a reduction may add to directly: its only use."""
        (result,) = op.results
        last = self.block.last_op
        if op.REDUCTION is None or not isinstance(last, NextOp):
            return None
        if [use.operation for use in result.uses] != [last]:
            return None
        index = next(i for i, c in enumerate(last.contributions) if c.value is result)
        loop = cast(LoopOp, self.block.parent_op())
        kind = loop.states[index].kind
        if kind != op.REDUCTION or (kind == "max" and op.ON_TENSOR_CORES):
            return None
        return last.contributions[index]

    def _accumulate(self, op: Operator, contribution: Contribution) -> None:
        loop = cast(LoopOp, self.block.parent_op())
        index = [c.value for c in loop.contributions].index(op.results[0])
        state = loop.state_arguments[index]
        if (columns := self.columns.get(state)) is not None:
            self._accumulate_columns(op, contribution, columns)
            self.places[op.results[0]] = self.places[state]
            return
        target = self.buffer_of(state)
        if contribution.rescale is not None:
            self._rescale(target, contribution.rescale)
        operands = [self.buffer_of(operand) for operand in op.operands]
        self._whole_tile(op, operands, target, accumulate=True)
        self.places[op.results[0]] = target

    def _rescale(self, target: Buffer, rescale: SSAValue) -> None:
        positions = self._positions_over(target)
        scale = self.buffer_of(rescale).at(positions)
        rescaled = f"{target.at(positions)} * {grouped(scale)}"
        self.lines += self.parallel(target, f"{target.at(positions)} = {rescaled}")

    def _accumulate_columns(
        self, op: Operator, contribution: Contribution, columns: Buffer
    ) -> None:
        """Add a tile to what is left of those before, element by element."""
        positions = self._positions_over(columns)
        held = columns.at(positions)
        total = held
        if contribution.rescale is not None:
            scale = self.buffer_of(contribution.rescale).at(positions)
            total = f"{held} * {scale}"
        value = self.buffer_of(op.operands[0]).at(positions)
        self.lines += self.parallel(columns, f"{held} = {total} + {value}")

    def sum_columns(self, op: Operator, columns: Buffer, target: Buffer) -> None:
        """Behind a loop: what its reduction gives for all its tiles."""
        self.uses[columns.name] = None
        self._whole_tile(op, [columns], target, accumulate=False)

    def _combined_into(self, op: Operator) -> Buffer | None:
        """
        The buffer of a value to which this reduction is added and which nothing else
        reads: `a @ b + c @ d` needs one accumulator.
        """
        user = op.results[0].get_user_of_unique_use()
        if op.REDUCTION is None or not isinstance(user, Operator):
            return None
        if user.COMBINES != op.REDUCTION or user.parent_block() is not self.block:
            return None
        others = [v for v in user.operands if v is not op.results[0]]
        if len(others) != 1 or others[0] not in self.places:
            return None
        (other,) = others
        same_type = other.type == op.results[0].type == user.results[0].type
        owner = other.owner
        if not same_type or not other.has_one_use() or not isinstance(owner, Operator):
            return None
        if owner.REDUCTION is None or memory_of(other) != memory_of(op.results[0]):
            return None
        target = self.buffer_of(other)
        self.places[op.results[0]] = self.places[user.results[0]] = target
        return target

    def finish(self, last: NextOp) -> None:
        """Hand over what the iteration gives to each state."""
        loop = cast(LoopOp, self.block.parent_op())
        # What reductions have added to their states is there already.
        given = [
            (argument, state, contribution)
            for argument, state, contribution in zip(
                loop.state_arguments, loop.states, last.contributions, strict=True
            )
            if self.places.get(contribution.value) != self.places[argument]
        ]
        if any(state.kind == "carry" for state in loop.states):
            # The states change all at once: what is computed from one comes first.
            for _, _, contribution in given:
                self._hold(contribution.value, loop)
                if contribution.rescale is not None:
                    self._hold(contribution.rescale, loop)
        for argument, state, contribution in given:
            self._update(self.buffer_of(argument), state, contribution)

    def _hold(self, value: SSAValue, loop: LoopOp) -> None:
        """Give a value a buffer that no state of the loop changes."""
        source = self.buffer_of(value)
        if value in loop.state_arguments:
            held = self.new_buffer(value, source.memory)
            self.lines.append(f"T.copy({source.region}, {held.name})")
            self.places[value] = held

    def _update(self, target: Buffer, state: State, given: Contribution) -> None:
        if state.kind == "tiles":
            raise EmissionError(
                "'itgraph.loop' op: a 'tiles' state has no TileLang form"
            )
        if state.kind == "carry" and given.value in self.places:
            source = self.buffer_of(given.value)
            self.lines.append(f"T.copy({source.region}, {target.name})")
            return
        positions = self._positions_over(target)
        held = target.at(positions)
        value = self.element(given.value, positions)
        if given.rescale is not None:
            held = f"{held} * {self.buffer_of(given.rescale).at(positions)}"
        if state.kind != "carry":
            value = combined(state.kind, held, value)
        self.lines += self.parallel(target, target.assignment(positions, value))

    # Expressions

    def element(self, value: SSAValue, positions: Sequence[str]) -> str:
        """One element of a value, computed in place if it has no buffer."""
        owner = value.owner
        if value not in self.places and isinstance(owner, Operator):
            return self._expression(owner, positions)
        return self.buffer_of(value).value(positions)

    def _number(self, value: SSAValue) -> float | None:
        """The value of what is computed from numbers and sizes alone."""
        if value in self.places:
            return None
        return constant_value(value, self.spelling.facts)

    def _expression(self, op: Operator, positions: Sequence[str]) -> str:
        number = self._number(op.results[0])
        if number is not None and isfinite(number):
            return repr(number)
        args: list[str] = []
        expression = op.expression
        for operand, indices in zip(op.operands, expression.operands, strict=True):
            own = [positions[index[0].axis] if index else "0" for index in indices]
            text = self.element(operand, own)
            element = cast(TensorType, operand.type).element_type
            if (
                is_float(element)
                and element != f32
                and not op.ONLY_ROUNDS
                and not op.IS_VIEW
            ):
                text = f'T.cast({text}, "float32")'
            if element == i1 and op.ONLY_ROUNDS:
                text = number_text(text)
            if op.ELEMENTWISE and not op.ONLY_ROUNDS:
                text = grouped(text)
            if isinstance(op, Exp | Exp2) and operand not in self.places:
                text = exponent(text, operand)
            args.append(text)
        if op.IS_VIEW:
            return args[0]
        return op.emit(args, positions, self._params(op))

    def _params(self, op: Operator) -> dict[str, Any]:
        """Parameters with their dims as text."""
        params = op.params
        for name, value in params.items():
            if isinstance(value, SymbolicDim):
                params[name] = self.spelling.dim(value)
                self.uses.update(dict.fromkeys(self.spelling.local_names(value)))
        return params

    # Parallel loops

    def positions(self, type_: TensorType) -> list[str]:
        return self._positions(len(type_.dims), self.spelling.kept(type_.dims))

    def _positions_over(self, buffer: Buffer) -> list[str]:
        return self._positions(len(buffer.dims), buffer.kept)

    def _positions(self, rank: int, kept: Sequence[int]) -> list[str]:
        if len(kept) > len(VARIABLES):
            raise EmissionError(
                f"a tile of {len(kept)} dims is more than TileLang takes"
            )
        positions = ["0"] * rank
        for variable, axis in zip(VARIABLES, kept, strict=False):
            positions[axis] = variable
        return positions

    def parallel(self, target: Buffer, statement: str) -> list[str]:
        self.uses[target.name] = None
        extents = self.spelling.extents(target.dims)
        variables = ", ".join(VARIABLES[: len(extents)])
        head = f"for {variables} in T.Parallel({', '.join(extents)}):"
        return [head, *indented([unparenthesized(statement)])]


def _only_rounds(op: Operator) -> bool:
    """Whether a copy does what the operator does; to and from masks it does not."""
    types = (*op.operand_types, op.result_type)
    is_mask = {type_.element_type == i1 for type_ in types}
    return op.ONLY_ROUNDS and len(is_mask) == 1


def combined(kind: str, held: str, value: str) -> str:
    """What a state of this kind holds after it was given `value`."""
    if kind == "max":
        return f"T.max({held}, {value})"
    return f"{held} + {value}"
