"""Rewrites that are right for every shape and never make a graph larger."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from cleave.dialects.algebra.contraction import Matmul
from cleave.dialects.algebra.views import Reshape, Transpose


class TransposeOfTranspose(RewritePattern):
    """
    Transforms:
        %1 = algebra.transpose %0 permutation [1, 0, 2]
        %2 = algebra.transpose %1 permutation [0, 2, 1]
    Into:
        %2 = algebra.transpose %0 permutation [1, 2, 0]
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Transpose, rewriter: PatternRewriter, /) -> None:
        inner = op.source.owner
        if not isinstance(inner, Transpose):
            return
        first = inner.params["permutation"]
        both = tuple(first[axis] for axis in op.params["permutation"])
        rewriter.replace(op, Transpose(inner.source, permutation=both))


class ReshapeOfReshape(RewritePattern):
    """
    Transforms:
        %1 = algebra.reshape %0 to [4, 8]
        %2 = algebra.reshape %1 to [2, 16]
    Into:
        %2 = algebra.reshape %0 to [2, 16]
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Reshape, rewriter: PatternRewriter, /) -> None:
        inner = op.source.owner
        if isinstance(inner, Reshape):
            rewriter.replace(op, Reshape(inner.source, shape=op.params["shape"]))


class MatmulOfTranspose(RewritePattern):
    """
    Transforms:
        %1 = algebra.transpose %k permutation [0, 2, 1]
        %2 = algebra.matmul %q, %1
    Into:
        %2 = algebra.matmul %q, %k transpose_rhs
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Matmul, rewriter: PatternRewriter, /) -> None:
        params = op.params
        operands: list[SSAValue] = []
        for operand, flag in ((op.lhs, "transpose_lhs"), (op.rhs, "transpose_rhs")):
            inner = operand.owner
            if isinstance(inner, Transpose) and _swaps_matrix_dims(inner):
                params[flag] = flag not in params
                operand = inner.source
            operands.append(operand)
        if operands != [op.lhs, op.rhs]:
            rewriter.replace(op, Matmul(*operands, **params))


def _swaps_matrix_dims(op: Transpose) -> bool:
    permutation = op.params["permutation"]
    rank = len(permutation)
    return rank >= 2 and permutation == (*range(rank - 2), rank - 1, rank - 2)
