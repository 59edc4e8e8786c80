"""`partition-split`: cut a graph with splits into a split and a combine kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.dims import Dim
from cleave.dialects.tensor import TensorType
from cleave.passes.superoptimize.superoptimize import EQUALS

KERNEL = "kernel"
"""The attribute of a part: of which graph it is which kernel, and how it is called."""
REFUSED = "refused"
"""The attribute of a graph with the number of its candidates refused, by reason."""

_NAMES = ("split", "combine")


@dataclass(frozen=True)
class PartitionSplitPass(ModulePass):
    """
    Cut graphs with splits at the reductions over the parts (paper section 4).

    An operator's kernel is the number of such reductions on the longest path to it, the
    reduction itself included; a reference over the parts is taken in the kernel that
    sums over them. Each kernel becomes a graph; what is computed in one and
    used in another goes through memory as f32. The attribute `kernel` says which kernel
    of which graph it is, and what its inputs and results are: inputs and outputs of the
    whole, or results of earlier kernels.

    Refused, and counted by reason in the attribute `refused` of the original, are
    candidates in which a computed tensor that still has the dim of the parts would go
    through memory, and those with a matmul behind the split kernel. Graphs without
    splits stay as they are.

    Before:
        algebra.graph @rowsum_2 [M, K, s] where [s | K]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
          %0 = algebra.split %x dim 1 count s
          %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
          %2 = algebra.reduce_sum %1 dim 0 : !algebra.tensor<[1, M, 1], f32>
          %3 = algebra.reshape %2 to [M, 1] : !algebra.tensor<[M, 1], f32>
          algebra.return %3
        }
    After:
        algebra.graph @rowsum_2_split [M, K, s] where [s | K]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[s, M, 1], f32>)
            attributes {kernel = {of = "rowsum_2", number = 0 : i64, ...}} {
          %0 = algebra.split %x dim 1 count s
          %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
          algebra.return %1
        }
        algebra.graph @rowsum_2_combine [M, K, s] where [s | K]
            (%0: !algebra.tensor<[s, M, 1], f32>) -> (!algebra.tensor<[M, 1], f32>)
            attributes {kernel = {of = "rowsum_2", number = 1 : i64, ...}} {
          %1 = algebra.reduce_sum %0 dim 0 : !algebra.tensor<[1, M, 1], f32>
          %2 = algebra.reshape %1 to [M, 1] : !algebra.tensor<[M, 1], f32>
          algebra.return %2
        }
    """

    name = "partition-split"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refused: dict[str, Counter[str]] = {}
        replacements: list[tuple[GraphOp, list[GraphOp]]] = []
        for graph in op.ops:
            if isinstance(graph, GraphOp) and _splits_of(graph):
                partition = Partition(graph)
                reason = partition.refusal()
                if reason is None:
                    replacements.append((graph, list(partition.build())))
                    continue
                equals = graph.attributes.get(EQUALS)
                if not isinstance(equals, SymbolRefAttr):
                    raise PassFailedException(f"graph @{graph.graph_name}: {reason}")
                refused.setdefault(equals.string_value(), Counter())[reason] += 1
                replacements.append((graph, []))
        for graph, parts in replacements:
            op.body.block.insert_ops_before(parts, graph)
            op.body.block.erase_op(graph)
        for graph in op.ops:
            if isinstance(graph, GraphOp) and (counts := refused.get(graph.graph_name)):
                graph.attributes[REFUSED] = DictionaryAttr(
                    {
                        reason: IntegerAttr(number, i64)
                        for reason, number in sorted(counts.items())
                    }
                )


def _splits_of(graph: GraphOp) -> list[tuple[Dim, Dim]]:
    """The count and the part of every split in a graph."""
    splits: dict[tuple[Dim, Dim], None] = {}
    for op in graph.operators:
        if op.IS_VIEW and not op.KEEPS_ORDER:
            for index in op.expression.operands[0]:
                if len(index) == 2:
                    of_parts, within = sorted(index, key=lambda term: term.axis)
                    dims = op.result_type.dims
                    splits[dims[of_parts.axis], dims[within.axis]] = None
    return list(splits)


class Partition:
    """
    The kernels of one graph.

    Inputs, generators and views of them belong to no kernel: they cost nothing, and
    each kernel has its own.
    """

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        splits = _splits_of(graph)
        self.counts = {count for count, _ in splits}
        self.parts = {part for _, part in splits}
        self.numbers: dict[SSAValue, int] = {}
        self._counts: dict[SSAValue, tuple[int, int]] = {}
        """How many references and how many others lead to a value over the parts."""
        for op in graph.operators:
            self._number(op)
        self.kernels = 1 + max(self.numbers.values(), default=0)

    def _number(self, op: Operator) -> None:
        operands = [self._counts[v] for v in op.operands if v in self._counts]
        if not operands and (op.IS_VIEW or not op.operands):
            return
        over_parts = not op.IS_VIEW and not self.counts.isdisjoint(
            op.expression.reduced
        )
        references = max((n for n, _ in operands), default=0)
        others = max((n for _, n in operands), default=0)
        if over_parts and op.IS_REFERENCE:
            references += 1
        elif over_parts:
            others += 1
        (result,) = op.results
        self._counts[result] = (references, others)
        self.numbers[result] = max(references, others)

    def _crossing(self) -> list[SSAValue]:
        """The values that are computed in one kernel and used in another."""
        return [
            value
            for value, number in self.numbers.items()
            if any(
                isinstance(use.operation, Operator)
                and self.numbers[use.operation.results[0]] != number
                for use in value.uses
            )
        ]

    def refusal(self) -> str | None:
        """Why the graph cannot be cut, if it cannot."""
        for value in self._crossing():
            if not self.parts.isdisjoint(cast(TensorType, value.type).dims):
                return "a computed tensor crosses with the dim of the parts"
        for op in self.graph.operators:
            if op.ON_TENSOR_CORES and self.numbers[op.results[0]] > 0:
                return "a matmul behind the split kernel"
        return None

    def build(self) -> Iterator[GraphOp]:
        """The kernels as graphs, in order."""
        crossing = self._crossing()
        sources: dict[SSAValue, str] = {
            argument: f"input {position}"
            for position, argument in enumerate(self.graph.inputs)
        }
        for number in range(self.kernels):
            passed_on = [v for v in crossing if self.numbers[v] == number]
            yield self._kernel(number, passed_on, sources)
            for position, value in enumerate(passed_on):
                sources[value] = f"kernel {number} result {position}"

    def _kernel(
        self, number: int, passed_on: list[SSAValue], sources: dict[SSAValue, str]
    ) -> GraphOp:
        graph = self.graph
        returned = {
            position: value
            for position, value in enumerate(graph.return_op.values)
            if self.numbers.get(value, self.kernels - 1) == number
        }
        results = [*passed_on, *returned.values()]
        operators = self._operators_for(results, number)
        used = {v for op in operators for v in op.operands} | set(results)
        arguments = [v for v in sources if v in used]
        block = Block(arg_types=[argument.type for argument in arguments])
        values: dict[SSAValue, SSAValue] = {}
        for argument, new in zip(arguments, block.args, strict=True):
            new.name_hint = argument.name_hint
            values[argument] = new
        for op in operators:
            block.add_op(op.clone(values))
        block.add_op(ReturnOp([values[value] for value in results]))
        outputs = [cast(TensorType, value.type) for value in passed_on]
        outputs += [graph.output_types[position] for position in returned]
        texts = ["passed on" for _ in passed_on] + [
            f"output {position}" for position in returned
        ]
        description: dict[str, Attribute] = {
            "of": StringAttr(graph.graph_name),
            "number": IntegerAttr(number, i64),
            "operands": ArrayAttr(StringAttr(sources[v]) for v in arguments),
            "results": ArrayAttr(map(StringAttr, texts)),
        }
        if (equals := graph.attributes.get(EQUALS)) is not None:
            description[EQUALS] = equals
        suffix = _NAMES[number] if self.kernels == len(_NAMES) else f"kernel{number}"
        return GraphOp(
            f"{graph.graph_name}_{suffix}",
            graph.symbol_names,
            graph.facts,
            outputs,
            block,
            {KERNEL: DictionaryAttr(description)},
        )

    def _operators_for(self, results: list[SSAValue], number: int) -> list[Operator]:
        """The operators of a kernel that its results need, in the graph's order."""
        needed: set[SSAValue] = set(results)
        operators: list[Operator] = []
        for op in reversed(list(self.graph.operators)):
            (value,) = op.results
            if value in needed and self.numbers.get(value, number) == number:
                operators.append(op)
                needed.update(op.operands)
        return operators[::-1]
