// MatMul + RowSum (paper, Table 3): X (s, 64), W (64, 4096), s = 4096.
algebra.graph @matmul_rowsum [M, K, N] where [M = 4096, K = 64, N = 4096]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, 1], f16>) {
  %y = algebra.matmul %x, %w
  %o = algebra.reduce_sum %y dim 1
  algebra.return %o
}
