// The logarithm of the softmax of each row.
algebra.graph @log_softmax [M, N] where [M = 4096, N = 4096]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, N], f32>) {
  %m = algebra.reduce_max %x dim 1
  %shifted = algebra.sub %x, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 1
  %log = algebra.log %l
  %o = algebra.sub %shifted, %log
  algebra.return %o
}
