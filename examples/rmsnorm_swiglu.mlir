// RMSNorm with a weight in front of SwiGLU, s = 4096, Llama-3 8B.
algebra.graph @rmsnorm_swiglu [M, K, N] where [M = 4096, K = 4096, N = 14336]
    (%x: !algebra.tensor<[M, K], f16>, %g: !algebra.tensor<[K], f16>,
     %w1: !algebra.tensor<[K, N], f16>, %w2: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %size = algebra.constant K : !algebra.tensor<[], f32>
  %xx = algebra.square %x
  %sum = algebra.reduce_sum %xx dim 1
  %mean = algebra.div %sum, %size
  %rms = algebra.sqrt %mean
  %xn = algebra.div %x, %rms
  %xg = algebra.mul %xn, %g
  %gate = algebra.matmul %xg, %w1
  %up = algebra.matmul %xg, %w2
  %act = algebra.silu %gate
  %o = algebra.mul %act, %up
  algebra.return %o
}
