// RUN: cleave-opt %s -p infer-reduced-dims | filecheck %s

// CHECK:      algebra.graph @attention [H, M, L, D, E]
// CHECK:          attributes {reduced_dims = [array<i64: 2>, array<i64: 1, 2>, array<i64: 1>]}
algebra.graph @attention [H, M, L, D, E]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, E], f16>)
    -> (!algebra.tensor<[H, M, E], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %o = algebra.matmul %p, %v
  algebra.return %o
}

// What the user wrote is right.
// CHECK:      algebra.graph @annotated [M, K]
// CHECK:          attributes {reduced_dims = [array<i64: 1>]}
algebra.graph @annotated [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>)
    attributes {reduced_dims = [array<i64: 1>]} {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}

// Each row of the result depends on every row of the input, though also on its own.
// CHECK:      algebra.graph @self [M, K]
// CHECK:          attributes {reduced_dims = [array<i64: 0, 1>]}
algebra.graph @self [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {
  %s = algebra.matmul %x, %x transpose_rhs
  %y = algebra.matmul %s, %x
  algebra.return %y
}

// Nothing is reduced, on the way to no result, or by nothing.
// CHECK:      algebra.graph @nothing [M, K]
// CHECK:          attributes {reduced_dims = [array<i64>, array<i64>, array<i64>]}
algebra.graph @nothing [M, K]
    (%x: !algebra.tensor<[M, K], f32>, %y: !algebra.tensor<[M, K], f32>,
     %dead: !algebra.tensor<[M, K], f32>)
    -> (!algebra.tensor<[M, K], f32>, !algebra.tensor<[M, K], f32>) {
  %sum = algebra.reduce_sum %dead dim 0
  %z = algebra.add %x, %y
  algebra.return %z, %x
}

// Through views: a merged dim, its parts, and a transposition.
// CHECK:      algebra.graph @views [A, B, K]
// CHECK:          attributes {reduced_dims = [array<i64: 0>]}
algebra.graph @views [A, B, K]
    (%x: !algebra.tensor<[A * B, K], f32>) -> (!algebra.tensor<[K, A, 1], f32>) {
  %split = algebra.reshape %x to [A, B, K]
  %first = algebra.transpose %split permutation [2, 0, 1]
  %y = algebra.reduce_sum %first dim 2
  algebra.return %y
}
