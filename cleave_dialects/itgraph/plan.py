"""`itgraph.plan`: a sequence of kernels, and `itgraph.return`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.facts import Fact, FactError, Facts
from cleave.dialects.itgraph.attributes import dims_inside
from cleave.dialects.itgraph.parsing import parse_tensor_type
from cleave.dialects.itgraph.terminator import Terminator
from cleave.dialects.itgraph.tmap import names_in
from cleave.dialects.tensor import (
    FactAttr,
    TensorType,
    facts_of,
    parse_symbols,
    parse_where,
    print_symbols,
    print_where,
    require_declared,
)
from cleave.dialects.wording import counted


@irdl_op_definition
class PlanOp(IRDLOperation):
    """
    Kernels that run one after the other; arguments and kernel results are GMEM tensors.

        itgraph.plan @copy [M, BM] where [M = 4096, BM = 128]
            (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>) {
          %y = itgraph.kernel (i_M = 0 to M ceildiv BM)
              ins (%tx = %x[i_M * BM] tile [BM])
              outs ([i_M * BM] of !algebra.tensor<[M], f16>) {
            itgraph.yield %tx
          }
          itgraph.return %y
        }

    Between kernels stand only views of GMEM tensors (`algebra.reshape`, ...) and calls
    of libraries (`itgraph.library_matmul`). Symbols are sizes, split counts and tile
    sizes; `where` binds them and says what is known.
    """

    name = "itgraph.plan"

    sym_name = prop_def(SymbolNameConstraint())
    symbols = prop_def(ArrayAttr[StringAttr])
    where = prop_def(ArrayAttr[FactAttr])
    outputs = prop_def(ArrayAttr[TensorType])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        symbols: Iterable[str],
        facts: Iterable[Fact],
        outputs: Iterable[TensorType],
        body: Region | Block,
        attributes: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "symbols": ArrayAttr(StringAttr(symbol) for symbol in symbols),
                "where": ArrayAttr(FactAttr(fact) for fact in facts),
                "outputs": ArrayAttr(outputs),
            },
            regions=[body if isinstance(body, Region) else Region(body)],
            attributes=dict(attributes or {}),
        )

    # Contents

    @property
    def plan_name(self) -> str:
        return self.sym_name.data

    @property
    def symbol_names(self) -> list[str]:
        return [symbol.data for symbol in self.symbols]

    @property
    def facts(self) -> Facts:
        return facts_of(self.symbols, self.where)

    @property
    def inputs(self) -> Sequence[BlockArgument]:
        return self.body.block.args

    @property
    def input_types(self) -> list[TensorType]:
        return [cast(TensorType, argument.type) for argument in self.inputs]

    @property
    def output_types(self) -> list[TensorType]:
        return list(self.outputs)

    @property
    def return_op(self) -> ReturnOp:
        return cast(ReturnOp, self.body.block.last_op)

    # Verification

    def refuse(self, rule: str) -> NoReturn:
        raise VerifyException(f"'itgraph.plan' op: @{self.plan_name}: {rule}")

    def verify_(self) -> None:
        declared = self.symbol_names
        if len(set(declared)) != len(declared):
            self.refuse(f"declares a symbol twice: {', '.join(declared)}")
        for fact in self.facts:
            names = names_in((fact.lhs, fact.rhs))
            self._require_declared(names, f"fact `{fact}`")
        try:
            self.facts.check()
        except FactError as error:
            self.refuse(str(error))
        for argument in self.inputs:
            self._verify_type(argument)
        for op in self.body.block.ops:
            if not _stands_in_plan(op):
                self.refuse(
                    f"'{op.name}' op stands between kernels, where only views such as "
                    "algebra.reshape and algebra.transpose may"
                )
            if isinstance(op, Operator):
                for attribute in op.properties.values():
                    names = names_in(dims_inside(attribute))
                    self._require_declared(names, f"'{op.name}' op")
                op.verify_facts(self.facts)
            for result in op.results:
                self._verify_type(result)
        self._verify_outputs()

    def _require_declared(self, names: Iterable[str], where: str) -> None:
        where = f"'itgraph.plan' op: @{self.plan_name}: {where}"
        require_declared(names, self.symbol_names, where)

    def _verify_type(self, value: SSAValue) -> None:
        if not isinstance(type_ := value.type, TensorType):
            self.refuse(f"a value has type {type_}, which is not an algebra tensor")
        self._require_declared(names_in(type_.dims), f"type {type_}")

    def _verify_outputs(self) -> None:
        values = self.return_op.values
        if len(values) != len(self.outputs):
            self.refuse(
                f"declares {counted(len(self.outputs), 'result')} "
                f"but returns {len(values)}"
            )
        for position, (value, declared) in enumerate(
            zip(values, self.outputs, strict=True)
        ):
            if value.type != declared:
                self.refuse(
                    f"declares result {position} as {declared} but returns {value.type}"
                )

    # Text

    @classmethod
    def parse(cls, parser: Parser) -> PlanOp:
        name = parser.parse_symbol_name().data
        symbols = parse_symbols(parser)
        where = parse_where(parser)
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_argument
        )
        parser.parse_punctuation("->")
        outputs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_tensor_type(parser)
        )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls(
            name,
            [symbol.data for symbol in symbols],
            [fact.data for fact in where],
            outputs,
            parser.parse_region(arguments),
            attributes.data if attributes else None,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.plan_name)
        print_symbols(printer, self.symbols)
        print_where(printer, self.where)
        with printer.indented(2):
            printer.print_string("\n")
            with printer.in_parens():
                printer.print_list(self.inputs, printer.print_block_argument)
            printer.print_string("\n-> ")
            with printer.in_parens():
                printer.print_list(self.outputs, printer.print_attribute)
            if self.attributes:
                printer.print_string("\nattributes ")
                printer.print_attr_dict(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReturnOp(Terminator):
    """The outputs of a plan: kernel results, arguments, or views of them."""

    name = "itgraph.return"

    traits = traits_def(IsTerminator(), Pure(), HasParent(PlanOp))


def _stands_in_plan(op: Operation) -> bool:
    """Views do; others say themselves that they belong into a plan."""
    if isinstance(op, Operator) and op.IS_VIEW:
        return True
    parent = op.get_trait(HasParent)
    return parent is not None and PlanOp in parent.op_types
