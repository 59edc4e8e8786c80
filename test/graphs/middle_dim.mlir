// Reductions over a middle dim and over the first one.
algebra.graph @middle_dim [A, K, N]
    (%x: !algebra.tensor<[A, K, N], f16>, %y: !algebra.tensor<[K, A, N], f32>)
    -> (!algebra.tensor<[A, 1, N], f32>) {
  %e = algebra.exp %x
  %sum = algebra.reduce_sum %e dim 1
  %max = algebra.reduce_max %y dim 0
  %row = algebra.reshape %max to [A, N]
  %back = algebra.reshape %row to [A, 1, N]
  %o = algebra.mul %sum, %back
  algebra.return %o
}
