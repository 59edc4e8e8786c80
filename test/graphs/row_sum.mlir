// A reduction alone.
algebra.graph @row_sum [M, K]
    (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, 1], f32>) {
  %o = algebra.reduce_sum %x dim 1
  algebra.return %o
}
