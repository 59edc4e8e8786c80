"""Operators that reduce: matmul, reduce_sum, reduce_max and reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Pure

from cleave.dialects.algebra.operator import Array, D, NumPy, Operator, V
from cleave.dialects.algebra.params import Axis, Flag, Params, Word
from cleave.dialects.algebra.tensor_expression import (
    Index,
    TensorExpression,
    Term,
    broadcast_indices,
)
from cleave.dialects.tensor import TensorType

if TYPE_CHECKING:
    from cleave.passes.superoptimize.semantics import Domain

LOWEST = -1e30
"""
The least number that exponents are shifted by. It is far below every exponent that is
not meant as a mask, and twice as much, or as much in another base, is still finite.
"""


@irdl_op_definition
class Matmul(Operator, HasCanonicalizationPatternsInterface):
    """
    `out[.., m, n] = sum over k of lhs[.., m, k] * rhs[.., k, n]`, accumulated in f32.

    Leading dims are batch dims and broadcast like NumPy's. `transpose_lhs` and
    `transpose_rhs` say that an operand is held as `[.., k, m]` or `[.., n, k]`.
    `precision tf32` allows f32 operands to be rounded to tf32 on tensor cores.
    """

    name = "algebra.matmul"
    PARAMS: ClassVar = (
        Flag("transpose_lhs", optional=True),
        Flag("transpose_rhs", optional=True),
        Word("precision", optional=True),
    )
    ARITY: ClassVar = 2
    REDUCTION: ClassVar = "sum"
    ON_TENSOR_CORES: ClassVar = True
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    transpose_lhs = opt_prop_def(UnitAttr)
    transpose_rhs = opt_prop_def(UnitAttr)
    precision = opt_prop_def(StringAttr)
    out = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        lhs, rhs = shapes
        for side, shape in (("lhs", lhs), ("rhs", rhs)):
            if len(shape) < 2:
                cls.refuse(f"{side} has rank {len(shape)}, but a matrix has at least 2")
        m, k = len(lhs) - 2, len(lhs) - 1
        if "transpose_lhs" in params:
            m, k = k, m
        rhs_k, n = len(rhs) - 2, len(rhs) - 1
        if "transpose_rhs" in params:
            rhs_k, n = n, rhs_k
        if lhs[k] != rhs[rhs_k]:
            cls.refuse(
                f"contracts lhs dim {k}, which is {lhs[k]}, "
                f"with rhs dim {rhs_k}, which is {rhs[rhs_k]}"
            )
        return (*_batch_shape(lhs, rhs), lhs[m], rhs[n])

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        result = super().infer_element_type(elements, params)
        if len({e for e in elements if e != result}) > 1:
            cls.refuse(f"lhs is {elements[0]} but rhs is {elements[1]}")
        if params.get("precision", "tf32") != "tf32":
            cls.refuse(f"precision {params['precision']} is not known (there is: tf32)")
        return result

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        lhs, rhs = arrays
        if "transpose_lhs" in params:
            lhs = lhs.swapaxes(-1, -2)
        if "transpose_rhs" in params:
            rhs = rhs.swapaxes(-1, -2)
        return np.matmul(lhs, rhs)

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        _, permutations = cls.without_views(shapes, params)
        lhs, rhs = (
            value if permutation is None else domain.transpose(value, permutation)
            for value, permutation in zip(values, permutations, strict=True)
        )
        contracted = shapes[0][-2 if "transpose_lhs" in params else -1]
        return domain.contract(lhs, rhs, contracted)

    @classmethod
    def search_params(
        cls, shapes: Sequence[tuple[Any, ...]], seen: Sequence[Params]
    ) -> Sequence[Params]:
        """Operands are `[.., m, k]` and `[.., k, n]`; transposed ones are views."""
        rests = [cls.without_views(shapes, params)[0] for params in seen]
        return rests[:1] if rests and all(r == rests[0] for r in rests) else [{}]

    @classmethod
    def without_views(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> tuple[Params, Sequence[Sequence[int] | None]]:
        flags = ("transpose_lhs", "transpose_rhs")
        permutations = [
            (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
            if flag in params
            else None
            for flag, shape in zip(flags, shapes, strict=True)
        ]
        rest = {name: value for name, value in params.items() if name not in flags}
        return rest, permutations

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        lhs, rhs = shapes
        result = cls.infer_shape(shapes, params)
        rank = len(result)
        m, n, k = Term(rank - 2), Term(rank - 1), Term(rank)
        lhs_matrix = (k, m) if "transpose_lhs" in params else (m, k)
        rhs_matrix = (n, k) if "transpose_rhs" in params else (k, n)
        contracted = lhs[-2] if "transpose_lhs" in params else lhs[-1]
        batch = result[:-2]
        indices: list[tuple[Index, ...]] = []
        for shape, matrix in ((lhs, lhs_matrix), (rhs, rhs_matrix)):
            leading = broadcast_indices(shape[:-2], batch)
            indices.append((*leading, *((term,) for term in matrix)))
        return TensorExpression(rank, tuple(indices), (contracted,))

    @classmethod
    def emit_tile(
        cls, operands: Sequence[str], result: str, params: Params, accumulate: bool
    ) -> str:
        """
        Parameters say how as well: `warps` divide "rows" or "columns" of the result;
        `function` is TileLang's; `clear` is when what `result` holds does not count.
        """
        flags = [
            text
            for flag, text in (
                ("transpose_lhs", "transpose_A=True"),
                ("transpose_rhs", "transpose_B=True"),
            )
            if flag in params
        ]
        if clear := params.get("clear", None if accumulate else "True"):
            flags.append(f"clear_accum={clear}")
        along = "Col" if params.get("warps") == "columns" else "Row"
        flags.append(f"policy=T.GemmWarpPolicy.Full{along}")
        function = params.get("function", "T.gemm")
        return f"{function}({', '.join([*operands, result, *flags])})"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.algebra.canonicalization import MatmulOfTranspose

        return (MatmulOfTranspose(),)


def _batch_shape(lhs: tuple[D, ...], rhs: tuple[D, ...]) -> tuple[D, ...]:
    rank = max(len(lhs), len(rhs)) - 2
    one = cast(D, 1)
    padded = [(one,) * (rank - len(s) + 2) + s[:-2] for s in (lhs, rhs)]
    result: list[D] = []
    for dim, (a, b) in enumerate(zip(*padded, strict=True)):
        if a != b and a != 1 and b != 1:
            Matmul.refuse(f"batch dim {dim} is {a} in lhs but {b} in rhs")
        result.append(cast(D, b if a == 1 else a))
    return tuple(result)


class Reduction(Operator):
    """A combination over one dim, which stays with size 1."""

    ARITY: ClassVar = 1
    PARAMS: ClassVar = (Axis("dim"),)
    source = operand_def(TensorType)
    dim = prop_def(IntegerAttr[I64])
    out = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        (shape,) = shapes
        dim: int = params["dim"]
        if not 0 <= dim < len(shape):
            cls.refuse(f"dim {dim} is out of range for an operand of rank {len(shape)}")
        return (*shape[:dim], cast(D, 1), *shape[dim + 1 :])

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        (shape,) = shapes
        dim: int = params["dim"]
        rank = len(shape)
        axes = [rank if axis == dim else axis for axis in range(rank)]
        indices = tuple(
            () if extent == 1 and axis != rank else (Term(axis),)
            for axis, extent in zip(axes, shape, strict=True)
        )
        return TensorExpression(rank, (indices,), (shape[dim],))

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        dim: int = params["dim"]
        reduce = domain.sum if cls.REDUCTION == "sum" else domain.max
        return reduce(values[0], dim, shapes[0][dim])

    @classmethod
    def search_params(
        cls, shapes: Sequence[tuple[Any, ...]], seen: Sequence[Params]
    ) -> Sequence[Params]:
        (shape,) = shapes
        return [{"dim": dim} for dim, extent in enumerate(shape) if extent != 1]

    @classmethod
    def emit_tile(
        cls, operands: Sequence[str], result: str, params: Params, accumulate: bool
    ) -> str:
        (source,) = operands
        clear = ", clear=False" if accumulate else ""
        return (
            f"T.reduce_{cls.REDUCTION}({source}, {result}, dim={params['dim']}{clear})"
        )


@irdl_op_definition
class ReduceSum(Reduction):
    """The sum over a dim, `algebra.reduce_sum %p dim 1`."""

    name = "algebra.reduce_sum"
    REDUCTION: ClassVar = "sum"

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return arrays[0].sum(axis=params["dim"], keepdims=True)


@irdl_op_definition
class ReduceMax(Reduction):
    """The largest element over a dim, `algebra.reduce_max %s dim 1`."""

    name = "algebra.reduce_max"
    REDUCTION: ClassVar = "max"

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return arrays[0].max(axis=params["dim"], keepdims=True)


@irdl_op_definition
class Reference(Reduction):
    """
    A value to shift exponents by, `algebra.reference %s dim 1`.

    Its meaning is the largest element over the dim, but at least `LOWEST`, which is
    finite: where every exponent is -inf, `exp(s - r)` is 0 and not NaN, and so are sums
    of it. A row whose exponents are all below `LOWEST` counts as masked.

    Any other value that is at least `LOWEST` would be sound (DESIGN section 7): a
    schedule may use the running maximum of the part seen so far, from `LOWEST` on.
    """

    name = "algebra.reference"
    REDUCTION: ClassVar = "max"
    IS_REFERENCE: ClassVar = True

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return arrays[0].max(axis=params["dim"], keepdims=True, initial=LOWEST)
