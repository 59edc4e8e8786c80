// SwiGLU (paper, Table 3): X (s, 4096), W1 and W2 (4096, 14336), s = 4096.
algebra.graph @swiglu [M, K, N] where [M = 4096, K = 4096, N = 14336]
    (%x: !algebra.tensor<[M, K], f16>, %w1: !algebra.tensor<[K, N], f16>,
     %w2: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %a = algebra.matmul %x, %w1
  %b = algebra.matmul %x, %w2
  %g = algebra.silu %a
  %o = algebra.mul %g, %b
  algebra.return %o
}
