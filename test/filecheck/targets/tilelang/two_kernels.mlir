// RUN: cleave-opt %s -p plan-memory -t tilelang | golden %S/two_kernels.py

// Split-K by hand: the first kernel leaves a temporary, which the second one reads under
// another shape. M has no value: the kernels take it from their arguments.
itgraph.plan @split_k [M, K, N, s, BM, BN, BK]
    where [K = 4096, N = 256, s = 4, BM = 128, BN = 128, BK = 64]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %parts = itgraph.kernel (i_s = 0 to s, i_M = 0 to M ceildiv BM, i_N = 0 to N ceildiv BN)
      ins (%tx = %x[i_M * BM, i_s * (K floordiv s)] tile [BM, K floordiv s],
           %tw = %w[i_s * (K floordiv s), i_N * BN] tile [K floordiv s, BN])
      outs ([i_s, i_M * BM, i_N * BN] of !algebra.tensor<[s, M, N], f32>) {
    %zero = algebra.constant 0.0 : !algebra.tensor<[1, BM, BN], f32>
    %sum = itgraph.loop (i_K = 0 to (K floordiv s) ceildiv BK)
        ins (%a = %tx[0, i_K * BK] tile [BM, BK], %b = %tw[i_K * BK, 0] tile [BK, BN])
        state (%acc = sum %zero) {
      %a3 = algebra.reshape %a to [1, BM, BK]
      %b3 = algebra.reshape %b to [1, BK, BN]
      %product = algebra.matmul %a3, %b3
      itgraph.next %product
    }
    itgraph.yield %sum
  }
  %flat = algebra.reshape %parts to [s, M * N]
  %o = itgraph.kernel (i_M = 0 to (M * N) ceildiv BM)
      ins (%p = %flat[0, i_M * BM] tile [s, BM])
      outs ([0, i_M * BM] of !algebra.tensor<[1, M * N], f16>) {
    %total = algebra.reduce_sum %p dim 0
    %narrow = algebra.cast %total to f16
    itgraph.yield %narrow
  }
  %result = algebra.reshape %o to [M, N]
  itgraph.return %result
}
