"""One plan of several kernels from the scheduled pieces of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.dims import Dim, symbol
from cleave.dialects.itgraph.level import Level
from cleave.dialects.itgraph.plan import PlanOp, ReturnOp
from cleave.dialects.tensor import FactAttr, TensorType
from cleave.dialects.wording import counted
from cleave.passes.partitioning.piece import Earlier, Input, Piece, piece_of
from cleave.passes.scheduling.tiles import fresh_name
from cleave.passes.substitute_facts import substitute_in


def compose(plans: Sequence[PlanOp]) -> PlanOp:
    """
    One plan that runs the plans of all pieces of a graph one after another.

    Symbols of the graph are the same in all pieces. Those that scheduling declared are
    renamed apart, since two kernels may tile one dim differently: the first piece that
    uses a name keeps it, so `BM` becomes `BM_2` in a second one. The plans are left as
    they are; each may be of several kernels itself.

    Raises:
        PassFailedException: a plan that is no piece, pieces that are missing or do not
            fit to each other, or facts that contradict each other.
    """
    pieces = _in_order(plans)
    first, _ = pieces[0]
    composition = _Composition(first)
    for piece, plan in pieces:
        composition.add(piece, plan)
    composed = composition.plan()
    try:
        composed.verify()
    except VerifyException as error:
        raise PassFailedException(f"the kernels of @{first.of}: {error}") from error
    return composed


def _in_order(plans: Sequence[PlanOp]) -> list[tuple[Piece, PlanOp]]:
    """The pieces by their numbers, which go from 0 to the count of the pieces."""
    pieces: list[tuple[Piece, PlanOp]] = []
    for plan in plans:
        try:
            piece = piece_of(plan)
        except ValueError as error:
            raise PassFailedException(str(error)) from error
        if piece is None:
            raise PassFailedException(f"@{plan.plan_name} is no piece of a graph")
        pieces.append((piece, plan))
    pieces.sort(key=lambda pair: pair[0].number)
    if not pieces:
        raise PassFailedException("there are no pieces to compose")
    first, _ = pieces[0]
    for piece, plan in pieces:
        if (piece.of, piece.count) != (first.of, first.count):
            raise PassFailedException(
                f"@{plan.plan_name} is of @{piece.of}, which has "
                f"{counted(piece.count, 'kernel')}, not of @{first.of}, which has "
                f"{first.count}"
            )
        if piece.symbols != first.symbols:
            raise PassFailedException(
                f"@{plan.plan_name} has other symbols than kernel {first.number} of "
                f"@{first.of}"
            )
    if [piece.number for piece, _ in pieces] != list(range(first.count)):
        found = ", ".join(str(piece.number) for piece, _ in pieces)
        raise PassFailedException(
            f"@{first.of} has {counted(first.count, 'kernel')}, but there are: {found}"
        )
    return pieces


class _Composition:
    """The plan that is made, piece by piece."""

    def __init__(self, first: Piece) -> None:
        self.first = first
        self.symbols = list(first.symbols)
        self.facts: dict[FactAttr, None] = {}
        self.taken = set(first.symbols)
        """Names that mean something in one of the pieces so far."""
        self.body: list[Operation] = []
        self.inputs: dict[int, SSAValue] = {}
        """What stands for an input of the whole until its block is made."""
        self.results: list[Sequence[SSAValue]] = []
        self.outputs: dict[int, SSAValue] = {}

    def add(self, piece: Piece, plan: PlanOp) -> None:
        plan = self._renamed(piece, plan.clone())
        self.facts.update(dict.fromkeys(plan.where))
        for operand, argument in zip(piece.operands, plan.inputs, strict=True):
            source = self._source(operand, argument)
            if source.type != argument.type:
                raise PassFailedException(
                    f"@{plan.plan_name} takes {operand} as {argument.type}, "
                    f"but it is {source.type}"
                )
            if source is not argument:
                argument.replace_all_uses_with(source)
        returned = list(plan.return_op.values)
        for op in list(plan.body.block.ops):
            if not isinstance(op, ReturnOp):
                op.detach()
                self.body.append(op)
        self.results.append(returned)
        for output, value in zip(piece.results, returned, strict=True):
            if output is not None:
                self.outputs[output] = value

    def _renamed(self, piece: Piece, plan: PlanOp) -> PlanOp:
        """The plan, in place, with its own symbols called as no other is."""
        own = [name for name in plan.symbol_names if name not in piece.symbols]
        iterators = set(_iterators(plan))
        names: dict[str, Dim] = {}
        taken = self.taken | iterators | set(own)
        for name in own:
            if name in self.taken:
                new = fresh_name(name, taken)
                names[name] = symbol(new)
                taken.add(new)
        if names:
            for op in plan.walk():
                substitute_in(op, names)
        self.symbols += [str(names.get(name, name)) for name in own]
        self.taken |= {*self.symbols, *iterators}
        return plan

    def _source(self, operand: Input | Earlier, argument: SSAValue) -> SSAValue:
        """What an operand of a piece is in the whole."""
        match operand:
            case Input(position):
                return self.inputs.setdefault(position, argument)
            case Earlier(number, result):
                return self.results[number][result]

    def plan(self) -> PlanOp:
        positions = sorted(self.inputs)
        if positions != list(range(len(positions))):
            raise PassFailedException(f"@{self.first.of}: no kernel takes some input")
        returned = ReturnOp([self.outputs[n] for n in sorted(self.outputs)])
        stand_ins = [self.inputs[position] for position in positions]
        block = Block(arg_types=[value.type for value in stand_ins])
        for stand_in, argument in zip(stand_ins, block.args, strict=True):
            argument.name_hint = stand_in.name_hint
            stand_in.replace_all_uses_with(argument)
        block.add_ops([*self.body, returned])
        types = [cast(TensorType, value.type) for value in returned.values]
        whole = dict(self.first.whole)
        plan = PlanOp(self.first.of, (), (), types, block, whole)
        plan.symbols = ArrayAttr(map(StringAttr, self.symbols))
        plan.where = ArrayAttr(self.facts)
        return plan


def _iterators(plan: PlanOp) -> Iterator[str]:
    for op in plan.walk():
        if isinstance(op, Level):
            yield from op.own_names
