// MLA prefill (paper, Table 3): Q (128, s, 192), K (128, L, 192), V (128, L, 128), s = L = 4096.
algebra.graph @mla_prefill [H, M, L, D, E]
    where [H = 128, M = 4096, L = 4096, D = 192, E = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, E], f16>)
    -> (!algebra.tensor<[H, M, E], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
