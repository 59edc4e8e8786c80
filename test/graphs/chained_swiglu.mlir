// SwiGLU and the projection behind it: the hidden dim is a reduction, inside of which
// two others stand.
algebra.graph @chained_swiglu [M, K, N, P]
    (%x: !algebra.tensor<[M, K], f16>, %w1: !algebra.tensor<[K, N], f16>,
     %w2: !algebra.tensor<[K, N], f16>, %w3: !algebra.tensor<[N, P], f16>)
    -> (!algebra.tensor<[M, P], f16>) {
  %a = algebra.matmul %x, %w1
  %b = algebra.matmul %x, %w2
  %g = algebra.silu %a
  %h = algebra.mul %g, %b
  %o = algebra.matmul %h, %w3
  algebra.return %o
}
