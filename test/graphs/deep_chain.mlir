// Four matmuls in a row; three reduced dims nest.
algebra.graph @deep_chain [M, K, L, N, P]
    (%x: !algebra.tensor<[M, K], f16>, %a: !algebra.tensor<[K, L], f16>,
     %b: !algebra.tensor<[L, N], f16>, %c: !algebra.tensor<[N, P], f16>)
    -> (!algebra.tensor<[M, P], f32>) {
  %1 = algebra.matmul %x, %a
  %2 = algebra.tanh %1
  %3 = algebra.matmul %2, %b
  %4 = algebra.tanh %3
  %5 = algebra.matmul %4, %c
  algebra.return %5
}
