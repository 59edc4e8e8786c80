"""Calls of vendor libraries, which stand in a plan where a kernel could."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasParent, Pure

from cleave.dialects.algebra.contraction import Matmul
from cleave.dialects.algebra.operator import Array, D, NumPy, Operator
from cleave.dialects.algebra.params import ElementType, Flag, Params
from cleave.dialects.algebra.tensor_expression import TensorExpression
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.tensor import TensorType


@irdl_op_definition
class LibraryMatmul(Operator):
    """
    A matmul by a vendor's library, accumulated in f32 and rounded to `to`:

        %y = itgraph.library_matmul %x, %w transpose_rhs to f16
            : !algebra.tensor<[M, N], f16>

    Operands are matrices or stacks of as many of them; `algebra.matmul` defines the
    rest. It is what compilers are measured against, not what they make.
    """

    name = "itgraph.library_matmul"
    PARAMS: ClassVar = (
        Flag("transpose_lhs", optional=True),
        Flag("transpose_rhs", optional=True),
        ElementType("element_type", "to"),
    )
    ARITY: ClassVar = 2
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    transpose_lhs = opt_prop_def(UnitAttr)
    transpose_rhs = opt_prop_def(UnitAttr)
    element_type = prop_def(Attribute)
    out = result_def(TensorType)
    traits = traits_def(Pure(), HasParent(PlanOp))

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        lhs, rhs = shapes
        if not 2 <= len(lhs) == len(rhs) <= 3 or lhs[:-2] != rhs[:-2]:
            dims = [f"[{', '.join(map(str, shape))}]" for shape in shapes]
            cls.refuse(
                f"multiplies {dims[0]} by {dims[1]}, but it takes two matrices or two "
                "stacks of as many"
            )
        m, k = lhs[-2:] if "transpose_lhs" not in params else lhs[:-3:-1]
        rhs_k, n = rhs[-2:] if "transpose_rhs" not in params else rhs[:-3:-1]
        if k != rhs_k:
            cls.refuse(f"contracts a dim of lhs, which is {k}, with one of {rhs_k}")
        return (*lhs[:-2], m, n)

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        Matmul.infer_element_type(elements, {})
        return params["element_type"]

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return Matmul.numpy(np, arrays, params, shape)

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        return Matmul.tensor_expression(shapes, params)
