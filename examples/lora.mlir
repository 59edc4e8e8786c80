// A linear layer with a low-rank update, x W + (x A) B, rank 16.
algebra.graph @lora [M, K, N, R] where [M = 4096, K = 4096, N = 4096, R = 16]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>,
     %a: !algebra.tensor<[K, R], f16>, %b: !algebra.tensor<[R, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %xw = algebra.matmul %x, %w
  %xa = algebra.matmul %x, %a
  %xab = algebra.matmul %xa, %b
  %o = algebra.add %xw, %xab
  algebra.return %o
}
