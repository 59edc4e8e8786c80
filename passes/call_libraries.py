"""`call-libraries`: plans that leave lone matmuls to a vendor's library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from cleave.dialects.algebra.elementwise import Cast
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.algebra.views import Reshape
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.library import LibraryMatmul
from cleave.dialects.itgraph.plan import PlanOp, ReturnOp
from cleave.dialects.tensor import TensorType
from cleave.passes.partitioning.draft import stored


@dataclass(frozen=True)
class CallLibrariesPass(ModulePass):
    """
    Make a plan that calls a library of each graph that is a matmul and nothing else,
    but for its rounding and views that keep the order of elements. Other graphs stay.

    Pieces of a graph stay pieces, so that `compose-plans` puts such calls between
    kernels. What is compiled is measured against plans like this one.

    Before:
        algebra.graph @product [M, K, N]
            (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
            -> (!algebra.tensor<[M, N], f16>) {
          %y = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>
          algebra.return %y
        }
    After:
        itgraph.plan @product [M, K, N]
            (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
            -> (!algebra.tensor<[M, N], f16>) {
          %y = itgraph.library_matmul %x, %w to f16 : !algebra.tensor<[M, N], f16>
          itgraph.return %y
        }
    """

    name = "call-libraries"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in list(op.ops):
            if isinstance(graph, GraphOp):
                plan = library_plan(graph)
                if plan is not None:
                    Rewriter.replace_op(graph, plan)


def library_plan(graph: GraphOp) -> PlanOp | None:
    """A plan that computes a graph by a call of a library, if there is one for it."""
    matmul = _lone_matmul(graph)
    if matmul is None or "precision" in matmul.params:
        return None
    lhs, rhs = matmul.operand_types
    shapes = _as_stacks(lhs.dims, rhs.dims, "transpose_lhs" in matmul.params)
    if shapes is None or lhs.element_type != rhs.element_type:
        return None
    block = Block(arg_types=graph.input_types)
    for argument, new in zip(graph.inputs, block.args, strict=True):
        new.name_hint = argument.name_hint
    operands = [
        _seen_as(block.args[cast(BlockArgument, stored(operand)).index], shape, block)
        for operand, shape in zip(matmul.operands, shapes, strict=True)
    ]
    (type_,) = graph.output_types
    call = LibraryMatmul(*operands, element_type=type_.element_type, **matmul.params)
    block.add_op(call)
    call.out.name_hint = matmul.results[0].name_hint
    block.add_op(ReturnOp([_seen_as(call.out, type_.dims, block)]))
    return PlanOp(
        graph.graph_name,
        graph.symbol_names,
        graph.facts,
        graph.output_types,
        block,
        graph.attributes,
    )


def _lone_matmul(graph: GraphOp) -> Operator | None:
    """The matmul of inputs whose result, rounded once, is all that a graph returns."""
    matmuls = [op for op in graph.operators if op.ON_TENSOR_CORES]
    others = [
        op
        for op in graph.operators
        if not op.ON_TENSOR_CORES and not op.KEEPS_ORDER and not isinstance(op, Cast)
    ]
    if len(matmuls) != 1 or others or len(graph.output_types) != 1:
        return None
    (matmul,) = matmuls
    returned = stored(graph.return_op.values[0])
    if isinstance(returned.owner, Cast):
        if returned.owner.element_type != graph.output_types[0].element_type:
            return None
        returned = stored(returned.owner.source)
    are_inputs = all(isinstance(stored(v), BlockArgument) for v in matmul.operands)
    return matmul if returned is matmul.results[0] and are_inputs else None


def _as_stacks(
    lhs: Sequence[Dim], rhs: Sequence[Dim], transposed: bool
) -> tuple[list[Dim], list[Dim]] | None:
    """The operands' shapes as matrices, or as stacks of as many; None for others."""
    batch = lhs[:-2]
    others = [*[1] * (len(lhs) - len(rhs)), *rhs[:-2]]
    if len(others) != len(batch):
        return None
    pairs = enumerate(zip(batch, others, strict=True))
    shared = next((axis for axis, (a, b) in pairs if a != b), len(batch))
    rows, columns = lhs[-2:]
    if repeated := batch[shared:]:
        # One matrix of rhs for several of lhs: their rows are those of one matrix.
        if transposed or any(dim != 1 for dim in others[shared:]):
            return None
        rows = _product([*repeated, rows])
    count = _product(batch[:shared])
    stack = [] if count == 1 else [count]
    return [*stack, rows, columns], [*stack, *rhs[-2:]]


def _seen_as(value: SSAValue, dims: Sequence[Dim], block: Block) -> SSAValue:
    """The same elements under other dims."""
    if tuple(dims) == cast(TensorType, value.type).dims:
        return value
    view = Reshape(value, shape=tuple(dims))
    block.add_op(view)
    view.out.name_hint = value.name_hint
    return view.out


def _product(dims: Sequence[Dim]) -> Dim:
    product: Dim = 1
    for dim in dims:
        product = product * dim
    return product
