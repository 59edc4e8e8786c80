"""`fold-broadcast`: batch dims that a matmul operand is broadcast over become rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.algebra.views import Reshape
from cleave.dialects.dims import Dim
from cleave.dialects.tensor import Shape, TensorType


@dataclass(frozen=True)
class FoldBroadcastPass(ModulePass):
    """
    Fold batch dims into the rows of matmuls whose right operand they broadcast.

    The queries of a group share their keys: as rows of one matmul, they share the tile
    that is loaded, and a few rows each fill a tensor-core tile together (DESIGN section
    8). Inputs are viewed with the two dims as one, outputs viewed back. A graph in
    which something tells the rows of different batches apart, as a mask of rows does,
    or that sums over one of the two dims, stays as it is.

    Before:
        algebra.graph @scores [H, G, M, D, L]
            (%q: !algebra.tensor<[H, G, M, D], f16>,
             %k: !algebra.tensor<[H, 1, D, L], f16>)
            -> (!algebra.tensor<[H, G, M, L], f32>) {
          %s = algebra.matmul %q, %k : !algebra.tensor<[H, G, M, L], f32>
          algebra.return %s
        }
    After:
          %q_1 = algebra.reshape %q to [H, G * M, D]
          %k_1 = algebra.reshape %k to [H, D, L]
          %s = algebra.matmul %q_1, %k_1 : !algebra.tensor<[H, G * M, L], f32>
          %s_1 = algebra.reshape %s to [H, G, M, L]
          algebra.return %s_1
    """

    name = "fold-broadcast"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                folded = fold_broadcast(graph)
                if folded is not graph:
                    Rewriter.replace_op(graph, folded)


def fold_broadcast(graph: GraphOp) -> GraphOp:
    """The graph with all that folds folded; `graph` itself if nothing does."""
    for op in graph.operators:
        pair = _broadcast_pair(op)
        if pair is None:
            continue
        try:
            folded = _Fold(graph, *pair).build()
        except _NotFoldableError:
            continue
        return fold_broadcast(folded)
    return graph


class _NotFoldableError(Exception):
    """Some value keeps the two dims apart."""


def _broadcast_pair(op: Operator) -> tuple[Dim, Dim] | None:
    """The batch dim next to the rows of a matmul, if the right operand lacks it."""
    if not op.ON_TENSOR_CORES or "transpose_lhs" in op.params:
        return None
    lhs, rhs = (type_.dims for type_ in op.operand_types)
    if len(lhs) < 3 or lhs[-3] == 1 or (len(rhs) > 2 and rhs[-3] != 1):
        return None
    return lhs[-3], lhs[-2]


@dataclass
class _Fold:
    """
    A copy of a graph in which dims `[.., batch, rows, x]` are `[.., batch * rows, x]`.

    A value of the graph is had `plain`, as it was, or `folded`: with the two dims as
    one, or without the dim of size 1 in the batch dim's place.
    """

    graph: GraphOp
    batch: Dim
    rows: Dim
    block: Block = field(init=False)
    plain: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    folded: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def build(self) -> GraphOp:
        graph = self.graph
        self.block = Block(arg_types=graph.input_types)
        for argument, new in zip(graph.inputs, self.block.args, strict=True):
            new.name_hint = argument.name_hint
            self.plain[argument] = new
        for op in graph.operators:
            self._copy(op)
        returned = [self._plain(value) for value in graph.return_op.values]
        self.block.add_op(ReturnOp(returned))
        for op in reversed(list(self.block.ops)):
            if op.results and not any(result.uses for result in op.results):
                self.block.erase_op(op)
        return GraphOp(
            graph.graph_name,
            graph.symbol_names,
            [fact.data for fact in graph.where],
            graph.output_types,
            self.block,
            dict(graph.attributes),
        )

    # Shapes

    def _has_both(self, value: SSAValue) -> bool:
        return _dims(value)[-3:-1] == (self.batch, self.rows)

    def _has_neither(self, value: SSAValue) -> bool:
        return all(dim == 1 for dim in _dims(value)[-3:-1][: len(_dims(value)) - 1])

    def _folded_dims(self, dims: Shape) -> Shape:
        if len(dims) < 3:
            return dims
        if dims[-3] == 1:
            return (*dims[:-3], *dims[-2:])
        return (*dims[:-3], self.batch * self.rows, dims[-1])

    # Values

    def _plain(self, value: SSAValue) -> SSAValue:
        if value not in self.plain:
            self.plain[value] = self._view(self.folded[value], _dims(value), value)
        return self.plain[value]

    def _folded(self, value: SSAValue) -> SSAValue:
        if value not in self.folded:
            dims = self._folded_dims(_dims(value))
            if dims == _dims(value):
                return self.plain[value]
            if self._has_both(value) and isinstance(value.owner, Operator):
                # Only views of tensors in GMEM regroup dims.
                self._require(value.owner.KEEPS_ORDER)
            self.folded[value] = self._view(self.plain[value], dims, value)
        return self.folded[value]

    def _add(self, op: Operator, like: SSAValue) -> SSAValue:
        self.block.add_op(op)
        op.results[0].name_hint = like.name_hint
        return op.results[0]

    def _view(self, source: SSAValue, dims: Shape, like: SSAValue) -> SSAValue:
        owner = source.owner
        if isinstance(owner, Reshape):
            source = owner.source
        return self._add(Reshape(source, shape=dims), like)

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _NotFoldableError

    # Operators

    def _copy(self, op: Operator) -> None:
        (result,) = op.results
        operands = list(op.operands)
        if not self._has_both(result) and not any(map(self._has_both, operands)):
            self.plain[result] = self._add(self._cloned(op), result)
        elif op.KEEPS_ORDER:
            (source,) = operands
            held = self.plain.get(source) or self.folded[source]
            self.plain[result] = self._view(held, _dims(result), result)
        else:
            self.folded[result] = self._add(self._in_folded_dims(op), result)

    def _cloned(self, op: Operator) -> Operator:
        return op.clone({value: self._plain(value) for value in op.operands})

    def _in_folded_dims(self, op: Operator) -> Operator:
        params = op.params
        if op.ON_TENSOR_CORES:
            self._require(_broadcast_pair(op) == (self.batch, self.rows))
        elif op.REDUCTION is not None:
            rank = len(op.result_type.dims)
            # The dims before the two stay where they are.
            self._require(params["dim"] not in (rank - 3, rank - 2))
            params["dim"] -= params["dim"] == rank - 1
        elif not op.operands:
            self._require(isinstance(op, Constant))
        else:
            self._require(op.ELEMENTWISE)
            for value in op.operands:
                self._require(self._has_both(value) or self._has_neither(value))
        type_ = op.result_type
        folded = TensorType(self._folded_dims(type_.dims), type_.element_type)
        operands = [self._folded(value) for value in op.operands]
        return type(op)(*operands, result_type=folded, **params)


def _dims(value: SSAValue) -> Shape:
    return cast(TensorType, value.type).dims
