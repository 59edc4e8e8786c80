"""How shifts, degrees and broken rules are put into words."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from xdsl.ir import Block, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.passes.exponents.degree import Moves, Obstacle, Sort, Unlike, Varies
from cleave.passes.exponents.factors import LN2, Extent, Placed
from cleave.passes.exponents.forms import Form


def names_in(block: Block) -> dict[SSAValue, str]:
    """Values as they are printed, `%p` or `%3`."""
    names: dict[SSAValue, str] = {}
    unnamed = 0
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    for value in values:
        if value.name_hint is None:
            names[value] = f"%{unnamed}"
            unnamed += 1
        else:
            names[value] = f"%{value.name_hint}"
    return names


class Wording:
    """Texts about the values of one block."""

    def __init__(self, block: Block) -> None:
        self.names = names_in(block)

    def name(self, tensor: Hashable) -> str:
        if tensor == LN2.tensor:
            return "ln 2"
        if isinstance(tensor, Extent):
            return str(tensor)
        return self.names[cast(SSAValue, tensor)]

    def form(self, form: Form) -> str:
        """`%p - 1/2 %q`, whatever dims they lie along."""
        text = ""
        for term, coefficient in form.map(lambda placed: Placed(placed.tensor)):
            sign = "-" if coefficient < 0 else "+" if text else ""
            size = abs(coefficient)
            parts = [] if size == 1 else [str(size)]
            parts.append(self.name(term.shift.tensor))
            for base, power in sorted(term.powers.items, key=lambda item: str(item[1])):
                factor = self.name(base.tensor)
                parts.append(f"* {factor}" if power > 0 else f"/ {factor}")
            text += f" {sign} " if text else sign
            text += " ".join(parts)
        return text or "0"

    def op(self, op: Operator) -> str:
        return f"'{op.name}' op {self.name(op.results[0])}"

    def rule(self, op: Operator, obstacle: Obstacle) -> str:
        """Which rule an operator's operands violate."""
        where = self.op(op)
        match obstacle:
            case Unlike(sort=sort, left=left, right=right):
                sides = [
                    f"{self._operand(side.operand, number)} "
                    + self._moves(sort, sort.of(side))
                    for number, side in enumerate((left, right))
                ]
                return f"{where}: {sides[0]} but {sides[1]}"
            case Moves(sort=sort, value=value):
                moves = self._moves(sort, sort.of(value))
                operand = self._operand(value.operand, 0)
                return f"{where}: {operand} {moves}, and it has no law for that"
            case Varies(value=value, sort=sort, position=position, reduced=reduced):
                axis = len(value.shape) - 1 - position
                verb = "reduces" if reduced else "regroups"
                moves = self._moves(sort, sort.of(value))
                operand = self._operand(value.operand, 0)
                return f"{where}: {verb} dim {axis}, along which {operand} {moves}"
            case _:
                return f"{where}: {obstacle}"

    @staticmethod
    def _operand(operand: int | None, otherwise: int) -> str:
        return f"operand {otherwise if operand is None else operand}"

    def _moves(self, sort: Sort, form: Form) -> str:
        return (
            f"is {sort.value} by {self.form(form)}" if form else f"is not {sort.value}"
        )
