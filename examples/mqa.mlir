// MQA (paper, Table 3): Q (32, s, d), K (1, d, L), V (1, L, d), s = L = 4096, d = 128.
algebra.graph @mqa [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[1, D, L], f16>,
     %v: !algebra.tensor<[1, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
