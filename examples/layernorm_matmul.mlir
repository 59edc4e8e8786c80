// LayerNorm (without weights) in front of a matmul, s = 4096, Llama-3 8B.
algebra.graph @layernorm_matmul [M, K, N] where [M = 4096, K = 4096, N = 6144]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %size = algebra.constant K : !algebra.tensor<[], f32>
  %sum = algebra.reduce_sum %x dim 1
  %mean = algebra.div %sum, %size
  %c = algebra.sub %x, %mean
  %cc = algebra.square %c
  %square_sum = algebra.reduce_sum %cc dim 1
  %variance = algebra.div %square_sum, %size
  %deviation = algebra.sqrt %variance
  %xn = algebra.div %c, %deviation
  %o = algebra.matmul %xn, %w
  algebra.return %o
}
