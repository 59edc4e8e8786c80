// MatMul (paper, Table 3): X (s, 4096), W (4096, 4096), s = 4096.
algebra.graph @matmul [M, K, N] where [M = 4096, K = 4096, N = 4096]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}
