"""`symbolize`: put symbols in the place of the numbers in a graph's shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.dims import Dim, symbol
from cleave.dialects.facts import Fact
from cleave.dialects.tensor import TensorType
from cleave.passes.dim_groups import DimGroups

GROUPS = "groups"
"""The attribute of a graph that reports which dims of inputs a symbol stands for."""


@dataclass(frozen=True)
class SymbolizePass(ModulePass):
    """
    Give dims that have to be equal a common symbol (paper section 4, appendix A).

    Dims are grouped by how operators use them, not by their extents; each group gets a
    symbol, dims of size 1 stay (Table 2). What the symbols stood for stands as facts.
    The attribute `groups` reports which dims of the inputs each symbol replaces. Dims
    that are symbolic already stay as they are, and with them the numbers that they are
    written with: the 2 in `K` split into [2, K floordiv 2].

    Before:
        algebra.graph @scores
            (%a: !algebra.tensor<[8, 4, 64], f16>,
             %b: !algebra.tensor<[1, 64, 16], f16>)
            -> (!algebra.tensor<[8, 4, 16], f32>) {
          %c = algebra.matmul %a, %b : !algebra.tensor<[8, 4, 16], f32>
          algebra.return %c
        }
    After:
        algebra.graph @scores [d0, d1, d2, d3]
            where [d0 = 8, d1 = 4, d2 = 64, d3 = 16]
            (%a: !algebra.tensor<[d0, d1, d2], f16>,
             %b: !algebra.tensor<[1, d2, d3], f16>)
            -> (!algebra.tensor<[d0, d1, d3], f32>)
            attributes {groups = {d0 = ["a 0"], d1 = ["a 1"], d2 = ["a 2", "b 1"],
                                  d3 = ["b 2"]}} {
          %c = algebra.matmul %a, %b : !algebra.tensor<[d0, d1, d3], f32>
          algebra.return %c
        }
    """

    name = "symbolize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            symbolized = [
                (graph, _Symbolization(graph))
                for graph in op.ops
                if isinstance(graph, GraphOp)
            ]
            for graph, symbolization in symbolized:
                if symbolization.numbers:
                    Rewriter.replace_op(graph, symbolization.build())
        except VerifyException as error:
            raise PassFailedException(str(error)) from error


@dataclass
class _Symbolization:
    """The symbols for one graph, and the graph that has them."""

    graph: GraphOp
    groups: DimGroups = field(init=False)
    symbols: dict[int, Dim] = field(default_factory=dict[int, Dim])
    """What is written for each group whose dim is a number."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The extent of each new symbol."""

    def __post_init__(self) -> None:
        self.groups = DimGroups(self.graph)
        for group in self.groups.products:
            if not isinstance(self.groups.dim(group), int):
                self._keep_factors(group)
        names = self._fresh_names()
        for group in range(len(self.groups.members)):
            self._name(group, names)

    def _fresh_names(self) -> Iterator[str]:
        taken = set(self.graph.symbol_names)
        return (name for n in count() if (name := f"d{n}") not in taken)

    def _keep_factors(self, group: int) -> None:
        """Keep the numbers that a dim which stays is the product of."""
        for factor in self.groups.products.get(group, ()):
            self.symbols[factor] = self.groups.dim(factor)
            self._keep_factors(factor)

    def _name(self, group: int, names: Iterator[str]) -> Dim:
        """The dim of a group; a symbol that is new, or a product of those of others."""
        extent = self.groups.dim(group)
        if group not in self.symbols:
            dim: Dim = extent
            if isinstance(extent, int):
                if (factors := self.groups.products.get(group)) is not None:
                    dim = 1
                    for factor in factors:
                        dim = dim * self._name(factor, names)
                else:
                    name = next(names)
                    self.numbers[name] = extent
                    dim = symbol(name)
            self.symbols[group] = dim
        return self.symbols[group]

    def build(self) -> GraphOp:
        graph = self.graph
        arguments = [self._type(argument) for argument in graph.inputs]
        block = Block(arg_types=arguments)
        values: dict[SSAValue, SSAValue] = {}
        for old, new in zip(graph.inputs, block.args, strict=True):
            new.name_hint = old.name_hint
            values[old] = new
        for op in graph.operators:
            (result,) = op.results
            type_ = self._type(result)
            params = op.retyped(op.params, type_.dims)
            operands = [values[operand] for operand in op.operands]
            copy = type(op)(*operands, result_type=type_, **params)
            copy.results[0].name_hint = result.name_hint
            block.add_op(copy)
            values[result] = copy.results[0]
        returned = [values[value] for value in graph.return_op.values]
        block.add_op(ReturnOp(returned))
        outputs = [
            TensorType(cast(TensorType, value.type).dims, declared.element_type)
            for value, declared in zip(returned, graph.output_types, strict=True)
        ]
        facts = [
            *graph.facts,
            *(Fact(symbol(name), "=", extent) for name, extent in self.numbers.items()),
        ]
        return GraphOp(
            graph.graph_name,
            [*graph.symbol_names, *self.numbers],
            facts,
            outputs,
            block,
            {**graph.attributes, GROUPS: self._report()},
        )

    def _type(self, value: SSAValue) -> TensorType:
        """The type of a value with symbols for its numbers."""
        old = cast(TensorType, value.type)
        groups = [self.groups.group(value, axis) for axis in range(old.rank)]
        dims = [1 if group is None else self.symbols[group] for group in groups]
        return TensorType(dims, old.element_type)

    def _report(self) -> DictionaryAttr:
        """For each new symbol the dims of inputs that it stands for."""
        places: Mapping[str, list[StringAttr]] = {name: [] for name in self.numbers}
        for position, argument in enumerate(self.graph.inputs):
            for axis in range(cast(TensorType, argument.type).rank):
                group = self.groups.group(argument, axis)
                if group is not None and (text := str(self.symbols[group])) in places:
                    name = argument.name_hint or str(position)
                    places[text].append(StringAttr(f"{name} {axis}"))
        return DictionaryAttr({name: ArrayAttr(dims) for name, dims in places.items()})
