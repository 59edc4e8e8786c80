// Softmax alone: the sum is needed before the quotient, so two loops.
algebra.graph @softmax [M, L]
    (%x: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, L], f16>) {
  %m = algebra.reduce_max %x dim 1
  %d = algebra.sub %x, %m
  %e = algebra.exp %d
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %e, %l
  algebra.return %o
}
