// Attention as people write it: scaled, and the softmax with its maximum subtracted.
algebra.graph @attention_softmax [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %width = algebra.constant D : !algebra.tensor<[], f32>
  %root = algebra.sqrt %width
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.div %qk, %root
  %m = algebra.reduce_max %s dim 2
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
