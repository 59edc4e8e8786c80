// Causal attention, bottom-right aligned, with the mask as a select.
algebra.graph @causal_attention [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %scale = algebra.constant 0.25 : !algebra.tensor<[], f32>
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.mul %qk, %scale
  %seen = algebra.select %mask, %s, %least
  %m = algebra.reduce_max %seen dim 2
  %d = algebra.sub %seen, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}
