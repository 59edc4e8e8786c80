// Attention to the last 128 keys (Mistral's sliding window).
algebra.graph @attention_window [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %scale = algebra.constant 0.08838834764831845 : !algebra.tensor<[], f32>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.window diagonal L - M size 128 : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %scaled = algebra.mul %qk, %scale
  %s = algebra.select %mask, %scaled, %hidden
  %m = algebra.reduce_max %s dim 2
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
