// GQA (paper, Table 3): Q (32, s, d), K (8, d, L), V (8, L, d), s = L = 4096, d = 128.
algebra.graph @gqa [H, G, M, L, D] where [H = 8, G = 4, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H * G, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H * G, M, D], f16>) {
  %qg = algebra.reshape %q to [H, G, M, D]
  %kg = algebra.reshape %k to [H, 1, D, L]
  %vg = algebra.reshape %v to [H, 1, L, D]
  %s = algebra.matmul %qg, %kg
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 3
  %n = algebra.div %p, %l
  %og = algebra.matmul %n, %vg
  %o = algebra.reshape %og to [H * G, M, D]
  algebra.return %o
}
