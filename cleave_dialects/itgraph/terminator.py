"""What the terminators of plans and kernels share: a list of values."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Self

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from cleave.dialects.tensor import TensorType, parse_tensor


class Terminator(IRDLOperation, ABC):
    """`itgraph.yield %a, %b`: hands values to what is around the region."""

    values = var_operand_def(TensorType)

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values: Sequence[SSAValue] = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: parse_tensor(parser)
        )
        return cls(values)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_ssa_value)
