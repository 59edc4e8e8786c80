// RUN: cleave-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: 'itgraph.library_matmul' op: multiplies [B, M, K] by [K, N], but it takes two matrices or two stacks of as many
itgraph.plan @p [B, M, K, N] (%x: !algebra.tensor<[B, M, K], f16>, %w: !algebra.tensor<[K, N], f16>) -> (!algebra.tensor<[B, M, N], f16>) {
  %y = itgraph.library_matmul %x, %w to f16 : !algebra.tensor<[B, M, N], f16>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.library_matmul' op: contracts a dim of lhs, which is K, with one of N
itgraph.plan @p [M, K, N] (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[N, K], f16>) -> (!algebra.tensor<[M, N], f16>) {
  %y = itgraph.library_matmul %x, %w to f16 : !algebra.tensor<[M, N], f16>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.library_matmul' expects parent op 'itgraph.plan'
algebra.graph @g [M] (%x: !algebra.tensor<[M, M], f16>) -> (!algebra.tensor<[M, M], f16>) {
  %y = itgraph.library_matmul %x, %x to f16
  algebra.return %y
}
