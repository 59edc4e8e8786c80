// Attention with its log-sum-exp: one loop, two results of different shapes.
algebra.graph @two_outputs [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}
