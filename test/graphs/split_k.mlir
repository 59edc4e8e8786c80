// Split-K: the parts are reduced, and then what they gave.
algebra.graph @split_k [M, K, N, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[s, M, N], f32>) {
  %xs = algebra.split %x dim 1 count s
  %ws = algebra.split %w dim 0 count s
  %part = algebra.matmul %xs, %ws
  algebra.return %part
}
