// A matmul of two computed operands, one of them transposed.
algebra.graph @computed_operands [M, K, N]
    (%x: !algebra.tensor<[M, K], bf16>, %w: !algebra.tensor<[N, K], bf16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %a = algebra.sigmoid %x
  %b = algebra.gelu %w
  %o = algebra.matmul %a, %b transpose_rhs
  algebra.return %o
}
