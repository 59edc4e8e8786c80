// MLA decode, absorbed (paper, Table 4): 128 requests of 128 heads, dc = 512, dr = 64, L = 4096.
algebra.graph @mla_decode [B, H, L, C, R]
    where [B = 128, H = 128, L = 4096, C = 512, R = 64]
    (%q: !algebra.tensor<[B, H, C], f16>, %kv: !algebra.tensor<[B, L, C], f16>,
     %q_pe: !algebra.tensor<[B, H, R], f16>, %k_pe: !algebra.tensor<[B, L, R], f16>)
    -> (!algebra.tensor<[B, H, C], f16>) {
  %content = algebra.matmul %q, %kv transpose_rhs
  %position = algebra.matmul %q_pe, %k_pe transpose_rhs
  %s = algebra.add %content, %position
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %kv
  algebra.return %o
}
