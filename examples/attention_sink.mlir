// Causal attention in which every head may look at nothing: a learned score without a value
// (gpt-oss).
algebra.graph @attention_sink [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %sink: !algebra.tensor<[H, 1, 1], f32>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %scale = algebra.constant 0.08838834764831845 : !algebra.tensor<[], f32>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %scaled = algebra.mul %qk, %scale
  %s = algebra.select %mask, %scaled, %hidden
  %largest = algebra.reduce_max %s dim 2
  %m = algebra.max %largest, %sink
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %sum = algebra.reduce_sum %p dim 2
  %sink_shifted = algebra.sub %sink, %m
  %nothing = algebra.exp %sink_shifted
  %l = algebra.add %sum, %nothing
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
