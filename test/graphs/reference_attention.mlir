// Attention with a reference in place of the maximum: online softmax.
algebra.graph @reference_attention [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %r = algebra.reference %s dim 2
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %log = algebra.log %l
  %lse = algebra.add %log, %r
  algebra.return %o, %lse
}
