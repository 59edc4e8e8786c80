// Attention that also returns the log-sum-exp of each row, for a backward pass or a merge.
algebra.graph @attention_lse [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %scale = algebra.constant 0.08838834764831845 : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.mul %qk, %scale
  %m = algebra.reduce_max %s dim 2
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  %log = algebra.log %l
  %lse = algebra.add %m, %log
  algebra.return %o, %lse
}
