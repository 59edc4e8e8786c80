// Attention on normalized queries and keys, s = L = 4096, d = 128.
algebra.graph @attention_qk_norm [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %qq = algebra.square %q
  %qsum = algebra.reduce_sum %qq dim 2
  %qroot = algebra.sqrt %qsum
  %qn = algebra.div %q, %qroot
  %kk = algebra.square %k
  %ksum = algebra.reduce_sum %kk dim 2
  %kroot = algebra.sqrt %ksum
  %kn = algebra.div %k, %kroot
  %s = algebra.matmul %qn, %kn transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
