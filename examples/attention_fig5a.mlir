// Attention with the division behind the V-matmul (paper, Fig. 5a), d = 128.
algebra.graph @attention_fig5a [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}
