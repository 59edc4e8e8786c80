// A gated MLP with its down projection, s = 4096, Llama-3 8B.
algebra.graph @gated_mlp [M, K, N, O] where [M = 4096, K = 4096, N = 14336, O = 4096]
    (%x: !algebra.tensor<[M, K], f16>, %w1: !algebra.tensor<[K, N], f16>,
     %w2: !algebra.tensor<[K, N], f16>, %w3: !algebra.tensor<[N, O], f16>)
    -> (!algebra.tensor<[M, O], f16>) {
  %gate = algebra.matmul %x, %w1
  %up = algebra.matmul %x, %w2
  %act = algebra.silu %gate
  %h = algebra.mul %act, %up
  %o = algebra.matmul %h, %w3
  algebra.return %o
}
