// Scaled, causal attention that also returns the log-sum-exp of each row, d = 128.
algebra.graph @attention_causal_lse [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %scale = algebra.constant 0.08838834764831845 : !algebra.tensor<[], f32>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.mul %qk, %scale
  %seen = algebra.select %mask, %s, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  %lse = algebra.log %l
  algebra.return %o, %lse
}
