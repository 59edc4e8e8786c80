// Grouped queries, a transposed input, and results that leave through views.
algebra.graph @views [H, G, M, L, D]
    (%q: !algebra.tensor<[M, H * G, D], f16>, %k: !algebra.tensor<[L, H, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H * G, M, D], f32>, !algebra.tensor<[H, G, M], f32>) {
  %q4 = algebra.reshape %q to [M, H, G, D]
  %qg = algebra.transpose %q4 permutation [1, 2, 0, 3]
  %k4 = algebra.reshape %k to [L, H, 1, D]
  %kg = algebra.transpose %k4 permutation [1, 2, 3, 0]
  %vg = algebra.reshape %v to [H, 1, L, D]
  %s = algebra.matmul %qg, %kg
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 3
  %og = algebra.matmul %p, %vg
  %o = algebra.reshape %og to [H * G, M, D]
  %sums = algebra.reshape %l to [H, G, M]
  algebra.return %o, %sums
}
