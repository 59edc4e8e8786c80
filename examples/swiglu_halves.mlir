// SwiGLU that also returns both of its products, as training needs them.
algebra.graph @swiglu_halves [M, K, N] where [M = 4096, K = 4096, N = 14336]
    (%x: !algebra.tensor<[M, K], f16>, %w1: !algebra.tensor<[K, N], f16>,
     %w2: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>, !algebra.tensor<[M, N], f16>,
        !algebra.tensor<[M, N], f16>) {
  %gate = algebra.matmul %x, %w1
  %up = algebra.matmul %x, %w2
  %act = algebra.silu %gate
  %o = algebra.mul %act, %up
  algebra.return %o, %gate, %up
}
