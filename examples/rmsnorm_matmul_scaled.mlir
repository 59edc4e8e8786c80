// RMSNorm + MatMul with the row scaling moved behind the matmul (paper, Fig. 1).
algebra.graph @rmsnorm_matmul_scaled [M, K, N] where [M = 4096, K = 4096, N = 6144]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %count = algebra.constant K : !algebra.tensor<[], f32>
  %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
  %squares = algebra.square %x
  %sum = algebra.reduce_sum %squares dim 1
  %mean = algebra.div %sum, %count
  %shifted = algebra.add %mean, %epsilon
  %rms = algebra.sqrt %shifted
  %y = algebra.matmul %x, %w
  %o = algebra.div %y, %rms
  algebra.return %o
}
