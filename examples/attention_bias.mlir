// Attention with a bias for every pair of a query and a key, -inf where it is a mask.
algebra.graph @attention_bias [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %bias: !algebra.tensor<[H, M, L], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %scale = algebra.constant 0.08838834764831845 : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  %scaled = algebra.mul %qk, %scale
  %s = algebra.add %scaled, %bias
  %m = algebra.reduce_max %s dim 2
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
