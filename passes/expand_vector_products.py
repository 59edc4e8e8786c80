"""`expand-vector-products`: matmuls of vectors become products and sums."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cleave.dialects.algebra.contraction import ReduceSum
from cleave.dialects.algebra.elementwise import Mul
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.algebra.views import Reshape
from cleave.dialects.tensor import Shape


@dataclass(frozen=True)
class ExpandVectorProductsPass(ModulePass):
    """
    Write the product of a matrix and a vector as a sum of products: tensor cores would
    compute a whole tile for it, and what it takes is reading the matrix once. A column
    times a row becomes products without a sum.

    Products are taken and summed in f32. A matmul whose vector is right of a matrix
    that is held transposed stays as it is.

    Before:
        %o = algebra.matmul %x, %r : !algebra.tensor<[M, 1], f32>
    After:
        %0 = algebra.reshape %r to [1, K] : !algebra.tensor<[1, K], f32>
        %1 = algebra.mul %x, %0 : !algebra.tensor<[M, K], f32>
        %o = algebra.reduce_sum %1 dim 1 : !algebra.tensor<[M, 1], f32>
    """

    name = "expand-vector-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                expand_vector_products(graph)


def expand_vector_products(graph: GraphOp) -> None:
    """Do it for one graph, in place; see `ExpandVectorProductsPass`."""
    for op in list(graph.operators):
        if op.ON_TENSOR_CORES and (ops := _expanded(op)) is not None:
            for new in ops:
                Rewriter.insert_op(new, InsertPoint.before(op))
            value = ops[-1].results[0]
            value.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(value)
            Rewriter.erase_op(op)


def _expanded(op: Operator) -> list[Operator] | None:
    """The operators in place of a matmul; None where it has no vector."""
    lhs, rhs = op.operands
    lhs_dims, rhs_dims = (type_.dims for type_ in op.operand_types)
    *_, rows, columns = result = op.result_type.dims
    if op.expression.reduced == (1,):
        columns_view = Reshape(lhs, shape=(*lhs_dims[:-2], rows, 1))
        rows_view = Reshape(rhs, shape=(*rhs_dims[:-2], 1, columns))
        product = Mul(columns_view.out, rows_view.out)
        return [columns_view, rows_view, product]
    if columns == 1 and "transpose_lhs" not in op.params:
        return _summed(lhs, rhs, (*rhs_dims[:-2], 1, lhs_dims[-1]), len(result) - 1)
    if rows != 1:
        return None
    if "transpose_rhs" not in op.params:
        return _summed(rhs, lhs, (*lhs_dims[:-2], rhs_dims[-2], 1), len(result) - 2)
    ops = _summed(rhs, lhs, (*lhs_dims[:-2], 1, rhs_dims[-1]), len(result) - 1)
    return [*ops, Reshape(ops[-1].results[0], shape=result)]


def _summed(
    matrix: SSAValue, vector: SSAValue, dims: Shape, dim: int
) -> list[Operator]:
    """The sum over `dim` of the matrix times the vector, which is seen as of `dims`."""
    view = Reshape(vector, shape=dims)
    views: list[Operator] = [view] if view.out.type != vector.type else []
    product = Mul(matrix, view.out if views else vector)
    return [*views, product, ReduceSum(product.out, dim=dim)]
