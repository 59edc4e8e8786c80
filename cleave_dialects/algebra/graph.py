"""
`algebra.graph` and `algebra.return`.

    algebra.graph @scores [M, L, D] where [D = 64]
        (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
        -> (!algebra.tensor<[M, L], f16>) {
      %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[M, L], f32>
      algebra.return %s
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.dims import Dim, SymbolicDim, names_of
from cleave.dialects.facts import Fact, FactError, Facts
from cleave.dialects.tensor import (
    FactAttr,
    TensorType,
    facts_of,
    parse_symbols,
    parse_tensor,
    parse_where,
    print_symbols,
    print_where,
    require_declared,
)
from cleave.dialects.wording import counted


class OperatorError(VerifyException):
    """What is wrong with an operator of a graph, which the graph as a whole shows."""

    def __init__(self, message: str, operator: Operator) -> None:
        super().__init__(message)
        self.operator = operator


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """
    The results of a graph, `algebra.return %a, %b`.

    A float result is rounded to the element type that the graph declares for it.
    """

    name = "algebra.return"
    values = var_operand_def(TensorType)
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(GraphOp)))

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        values: Sequence[SSAValue] = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: parse_tensor(parser)
        )
        return cls(values)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_ssa_value)


@irdl_op_definition
class GraphOp(IRDLOperation):
    """
    A closed graph of operators over symbolic shapes, with one or more results.

    Only declared symbols may appear in it, and nothing is proved about them beyond the
    facts after `where` and that each is at least 1. Candidates found by passes carry
    what is known of them as `attributes {...}`.
    """

    name = "algebra.graph"
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
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "symbols": ArrayAttr(StringAttr(symbol) for symbol in symbols),
                "where": ArrayAttr(FactAttr(fact) for fact in facts),
                "outputs": ArrayAttr(outputs),
            },
            attributes=attributes or {},
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    # Contents

    @property
    def graph_name(self) -> str:
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
    def operators(self) -> Iterator[Operator]:
        for op in self.body.block.ops:
            if isinstance(op, Operator):
                yield op

    @property
    def return_op(self) -> ReturnOp:
        return cast(ReturnOp, self.body.block.last_op)

    # Verification

    def verify_(self) -> None:
        where = f"'algebra.graph' op: @{self.graph_name}"
        declared = self.symbol_names
        if len(set(declared)) != len(declared):
            names = ", ".join(declared)
            raise VerifyException(f"{where} declares a symbol twice: {names}")
        facts = self.facts
        try:
            facts.check()
        except FactError as error:
            raise VerifyException(f"{where}: {error}") from error
        for fact in facts:
            require_declared(
                names_of(fact.lhs) | names_of(fact.rhs),
                declared,
                f"{where}: fact `{fact}`",
            )
        for type_ in [*self.input_types, *self.output_types]:
            _require_declared_dims(type_.dims, declared, where, type_)
            for dim in type_.dims:
                if isinstance(size := facts.resolve(dim), int) and size < 1:
                    raise VerifyException(
                        f"{where}: type {type_}: {dim} is {size}, but dims are at "
                        "least 1"
                    )
        for op in self.body.block.ops:
            self._verify_operator(op, facts, declared)
        self._verify_return(where)

    def _verify_operator(
        self, op: Operation, facts: Facts, declared: list[str]
    ) -> None:
        if isinstance(op, ReturnOp):
            return
        if not isinstance(op, Operator):
            raise VerifyException(
                f"'algebra.graph' op: holds '{op.name}', which is no algebra operator"
            )
        where = f"'{op.name}' op"
        try:
            _require_declared_dims(op.result_type.dims, declared, where, op.result_type)
            for name, value in op.params.items():
                _require_declared_dims(_dims_in(value), declared, where, name)
            op.verify_facts(facts)
        except VerifyException as error:
            raise OperatorError(str(error), op) from error

    def _verify_return(self, where: str) -> None:
        last = self.body.block.last_op
        if not isinstance(last, ReturnOp):
            raise VerifyException(f"{where} does not end with algebra.return")
        if not len(self.outputs):
            raise VerifyException(f"{where} has no result, so it computes nothing")
        if len(last.values) != len(self.outputs):
            raise VerifyException(
                f"{where} declares {counted(len(self.outputs), 'result')} "
                f"but returns {len(last.values)}"
            )
        for position, (value, declared) in enumerate(
            zip(last.values, self.outputs, strict=True)
        ):
            returned = cast(TensorType, value.type)
            rounds = is_float(returned.element_type) and is_float(declared.element_type)
            same_element = returned.element_type == declared.element_type
            if returned.dims != declared.dims or not (same_element or rounds):
                raise VerifyException(
                    f"{where} declares result {position} as {declared} "
                    f"but returns {returned}"
                )

    # Text

    @classmethod
    def parse(cls, parser: Parser) -> GraphOp:
        start = parser.pos
        name = parser.parse_symbol_name()
        end = parser.pos
        symbols = parse_symbols(parser)
        where = parse_where(parser)
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_argument
        )
        parser.parse_punctuation("->")
        position = parser.pos
        outputs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        if not all(isinstance(output, TensorType) for output in outputs):
            parser.raise_error("a graph's results are algebra tensors", position)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        if not body.blocks or not isinstance(body.block.last_op, ReturnOp):
            # xDSL would say it of the last operator, before the graph is verified.
            parser.raise_error(
                f"'algebra.graph' op: @{name.data} does not end with algebra.return",
                start,
                end,
            )
        return cls.create(
            properties={
                "sym_name": name,
                "symbols": symbols,
                "where": where,
                "outputs": ArrayAttr(outputs),
            },
            attributes=dict(attributes.data) if attributes else {},
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.graph_name)
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


def _dims_in(value: Any) -> list[Dim]:
    """The symbolic dims in a parameter."""
    values = cast(tuple[Any, ...], value) if isinstance(value, tuple) else (value,)
    return [dim for dim in values if isinstance(dim, SymbolicDim)]


def _require_declared_dims(
    dims: Iterable[Any], declared: list[str], where: str, what: TensorType | str
) -> None:
    """Refuse an undeclared symbol in a dim of a type, or of the parameter called so."""
    for dim in dims:
        # Types are printed only if there is something wrong with them.
        if not names_of(dim).issubset(declared):
            whose = f"parameter '{what}'" if isinstance(what, str) else f"type {what}"
            require_declared(names_of(dim), declared, f"{where}: {whose}")
