"""Splits into parts of a chunk each, for counts that do not divide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, f32, i1
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.elementwise import Select
from cleave.dialects.algebra.generators import Constant, Within
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import IDENTITY, Operator, is_float
from cleave.dialects.algebra.views import Split
from cleave.dialects.dims import Dim, SymbolicDim, substitute, symbol
from cleave.dialects.facts import Fact
from cleave.dialects.tensor import TensorType
from cleave.passes.scheduling.visibility import (
    BEYOND,
    LEAST,
    OTHER,
    ZERO,
    Known,
    known_result,
)

_MULTIPLES = (128, 64)
"""Chunks are multiples of one of these, so that tiles of usual sizes divide them."""


@dataclass(frozen=True)
class UnevenSplit:
    """The dim `extent` in `count` parts of `chunk`, all of them symbols."""

    extent: str
    count: str
    chunk: str


def chunk_of(extent: int, count: int) -> int | None:
    """The positions of a part where none of the parts is empty; None where one is."""
    for multiple in _MULTIPLES:
        chunk = -(-extent // (count * multiple)) * multiple
        if (count - 1) * chunk < extent:
            return chunk
    return None


def with_chunks(graph: GraphOp, split: UnevenSplit) -> GraphOp:
    """
    The graph with parts of a chunk each, whatever divides.

    Reductions over the positions of a part are masked with their identity where there
    are none, except where that is there already: zeros beyond the end of what is
    loaded. The 0 of an exponential is the -inf of its exponent, which a reference sees.

    Raises VerifyException if the graph has no such form: it computes with the length of
    a part, joins the parts, or has one in two dims of a value.
    """
    return _Rewriting(graph, split).run()


def same_numbers(a: GraphOp, b: GraphOp, sizes: Mapping[str, int]) -> bool:
    """
    Whether two graphs give the same float64 results, but for rounding, for inputs of
    both signs, positive and negative ones.
    """
    import numpy as np

    from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph

    generator = np.random.default_rng(5)
    for low, high in ((-0.5, 0.5), (0.05, 0.25), (-0.25, -0.05)):
        inputs = [
            generator.uniform(low, high, evaluate_dims(type_.dims, sizes))
            if is_float(type_.element_type)
            else generator.integers(0, 2, evaluate_dims(type_.dims, sizes))
            for type_ in a.input_types
        ]
        with np.errstate(all="ignore"):
            results = [execute_graph(graph, inputs, sizes) for graph in (a, b)]
        for first, second in zip(*results, strict=True):
            if first.shape != second.shape or not np.allclose(
                first, second, rtol=1e-7, atol=1e-9, equal_nan=True
            ):
                return False
    return True


@dataclass
class _Rewriting:
    graph: GraphOp
    split: UnevenSplit
    known: dict[SSAValue, Known] = field(default_factory=dict[SSAValue, Known])
    """What values with a dim of the chunk are where the split dim has no position."""
    masks: dict[tuple[int, int, int], SSAValue] = field(
        default_factory=dict[tuple[int, int, int], SSAValue]
    )
    fills: dict[float, SSAValue] = field(default_factory=dict[float, SSAValue])
    masked: dict[SSAValue, float] = field(default_factory=dict[SSAValue, float])
    """What masked values are where the split dim has no position."""

    def __post_init__(self) -> None:
        self.extent = symbol(self.split.extent)
        self.count = symbol(self.split.count)
        self.chunk = symbol(self.split.chunk)
        self.block = Block(arg_types=self.graph.input_types)

    def run(self) -> GraphOp:
        values: dict[SSAValue, SSAValue] = {}
        for old, new in zip(self.graph.inputs, self.block.args, strict=True):
            new.name_hint = old.name_hint
            values[old] = new
        for op in self.graph.operators:
            new_op = self._in_chunks(op, [values[operand] for operand in op.operands])
            self.block.add_op(new_op)
            new_op.results[0].name_hint = op.results[0].name_hint
            values[op.results[0]] = new_op.results[0]
        self.block.add_op(ReturnOp([values[v] for v in self.graph.return_op.values]))
        self._mask()
        copy = self.graph.clone()
        copy.body.detach_block(copy.body.block)
        copy.body.add_block(self.block)
        copy.symbols = ArrayAttr([*self.graph.symbols, StringAttr(self.split.chunk)])
        divides = Fact(self.count, "|", self.extent)
        copy.where = ArrayAttr(f for f in self.graph.where if f.data != divides)
        return copy

    # Parts of a chunk

    def _in_chunks(self, op: Operator, operands: list[SSAValue]) -> Operator:
        params = {name: self._value(value) for name, value in op.params.items()}
        if isinstance(op, Split) and params["count"] == self.count:
            params["chunk"] = self.chunk
        type_ = None
        if not op.operands:
            dims = tuple(map(self._dim, op.result_type.dims))
            type_ = op.result_type.with_dims(dims)
        return type(op)(*operands, result_type=type_, **params)

    def _value(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._dim, cast(tuple[Dim, ...], value)))
        return self._dim(value) if isinstance(value, SymbolicDim) else value

    def _dim(self, dim: Dim) -> Dim:
        """A dim in which the split dim stands with its count: the length of a part."""
        if not isinstance(dim, SymbolicDim) or self.split.count not in dim.names:
            return dim
        whole: Mapping[str, Dim] = {self.split.extent: self.count * self.chunk}
        return substitute(dim, whole)

    # Masks

    def _mask(self) -> None:
        for op in list(self.block.ops):
            if not isinstance(op, Operator):
                continue
            self._require_one_chunk(op)
            if op.REDUCTION is not None:
                identity = IDENTITY[op.REDUCTION]
                for position in self._reduced_operands(op):
                    if not self._is(op.operands[position], identity):
                        self._mask_operand(op, position, identity)
            self._learn(op)

    def _require_one_chunk(self, op: Operator) -> None:
        if op.result_type.dims.count(self.chunk) > 1:
            raise VerifyException(
                f"'{op.name}' op: has parts of {self.split.extent} in two dims"
            )

    def _reduced_operands(self, op: Operator) -> Iterator[int]:
        """The operands of a reduction over the positions of a part."""
        expression = op.expression
        for position, indices in enumerate(expression.operands):
            dims = op.operand_types[position].dims
            for dim, index in enumerate(indices):
                is_reduced = any(term.axis >= expression.rank for term in index)
                if is_reduced and dims[dim] == self.chunk:
                    yield position

    def _mask_operand(self, op: Operator, position: int, identity: float) -> None:
        """Mask an operand, or what it is computed from, for all that read it."""
        user, value, fill = self._place(op, op.operands[position], identity)
        users = list(value.uses)
        if self.known.get(value, OTHER) != OTHER:
            # Others may want what is there already.
            users = [use for use in users if use.operation is user]
        select = Select(self._within(_dims(value)), value, self._number(fill))
        self.block.insert_op_after(select, cast(Operator, value.owner))
        select.out.name_hint = value.name_hint
        self.masked[select.out] = fill
        for use in users:
            use.operation.operands[use.index] = select.out
        # What was computed in between may be something else by now.
        for later in self.block.ops:
            if later is op:
                break
            if isinstance(later, Operator):
                self._learn(later)

    def _place(
        self, user: Operator, value: SSAValue, fill: float
    ) -> tuple[Operator, SSAValue, float]:
        """
        What to mask with what, so that an operand is `fill`, and who uses that: the
        exponent of an exponential that is to be 0, and otherwise the operand.
        """
        owner = value.owner
        if fill == 0 and isinstance(owner, Operator) and owner.ELEMENTWISE:
            for operand in owner.operands:
                known = known_result(owner, BEYOND, {operand: LEAST})
                if known == ZERO and self.chunk in _dims(operand):
                    return owner, operand, -float("inf")
                if owner.ONLY_ROUNDS:
                    return self._place(owner, operand, fill)
        return user, value, fill

    def _within(self, dims: tuple[Dim, ...]) -> SSAValue:
        if self.count not in dims:
            raise VerifyException(f"a value has one part of {self.split.extent} alone")
        part, dim = dims.index(self.count), dims.index(self.chunk)
        place = (len(dims), part, dim)
        if place not in self.masks:
            shape = [d if axis in (part, dim) else 1 for axis, d in enumerate(dims)]
            mask = Within(
                result_type=TensorType(shape, i1),
                part=part,
                dim=dim,
                chunk=self.chunk,
                limit=self.extent,
            )
            self._in_front(mask, "within")
            self.masks[place] = mask.out
        return self.masks[place]

    def _number(self, value: float) -> SSAValue:
        if value not in self.fills:
            constant = Constant(result_type=TensorType([], f32), value=value)
            self._in_front(constant, "hidden")
            self.fills[value] = constant.out
        return self.fills[value]

    def _in_front(self, op: Within | Constant, name: str) -> None:
        first = self.block.first_op
        assert first is not None
        self.block.insert_op_before(op, first)
        op.out.name_hint = name

    # What is known beyond the end

    def _is(self, value: SSAValue, number: float) -> bool:
        return self.known.get(value, OTHER) == BEYOND.number(number)

    def _learn(self, op: Operator) -> None:
        (result,) = op.results
        if self.chunk not in _dims(result):
            return
        if result in self.masked:
            self.known[result] = BEYOND.number(self.masked[result])
        elif isinstance(op, Split) and op.params.get("chunk") == self.chunk:
            self.known[result] = ZERO if _is_loaded(op.source) else OTHER
        else:
            self.known[result] = known_result(op, BEYOND, self.known)


def _is_loaded(value: SSAValue) -> bool:
    """Whether a value is an input, seen through views and roundings."""
    while isinstance(op := value.owner, Operator) and (op.IS_VIEW or op.ONLY_ROUNDS):
        value = op.operands[0]
    return isinstance(value, BlockArgument)


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return cast(TensorType, value.type).dims
