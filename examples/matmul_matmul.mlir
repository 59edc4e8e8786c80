// MatMul + MatMul (paper, Table 3): Q (32, s, 64), K and V (32, L, 64), s = L = 4096.
algebra.graph @matmul_matmul [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 64]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %o = algebra.matmul %s, %v
  algebra.return %o
}
