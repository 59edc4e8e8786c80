// A sum and a maximum of one computed value: its tail has two masks.
algebra.graph @two_tails [M, K]
    (%x: !algebra.tensor<[M, K], f16>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>) {
  %e = algebra.sigmoid %x
  %sum = algebra.reduce_sum %e dim 1
  %max = algebra.reduce_max %e dim 1
  algebra.return %sum, %max
}
