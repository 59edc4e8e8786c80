// RUN: XDSL_ROUNDTRIP
// RUN: XDSL_GENERIC_ROUNDTRIP

// CHECK:         %y = itgraph.library_matmul %x, %w transpose_lhs transpose_rhs to f16 : !algebra.tensor<[B, M, N], f16>
// CHECK-NEXT:    %s = itgraph.library_matmul %y, %y transpose_rhs to f32 : !algebra.tensor<[B, M, M], f32>
// CHECK-GENERIC: "itgraph.library_matmul"(%x, %w) <{transpose_lhs, transpose_rhs, element_type = f16}>
itgraph.plan @p [B, M, K, N]
    (%x: !algebra.tensor<[B, K, M], f16>, %w: !algebra.tensor<[B, N, K], f16>)
    -> (!algebra.tensor<[B, M, M], f32>) {
  %y = itgraph.library_matmul %x, %w transpose_lhs transpose_rhs to f16
  %s = itgraph.library_matmul %y, %y transpose_rhs to f32
  itgraph.return %s
}
