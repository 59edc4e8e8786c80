// Attention and its output projection: the heads of a row are joined in between, which
// no kernel can do in its tiles.
algebra.graph @attention_projection [H, M, L, D, N]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %w: !algebra.tensor<[H * D, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %rows = algebra.transpose %o permutation [1, 0, 2]
  %joined = algebra.reshape %rows to [M, H * D]
  %y = algebra.matmul %joined, %w
  algebra.return %y
}
