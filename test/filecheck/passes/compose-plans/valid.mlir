// RUN: cleave-opt %s -p 'compose-plans' | cleave-opt | filecheck %s

// Sizes are the same in all kernels and tile sizes are not: M is tiled by 16 and by 64.
// What the first kernel passes on to the second one is a tensor between them; views of
// it stand there, too. Other plans stay.

// CHECK:      itgraph.plan @other

// CHECK:      itgraph.plan @norm [M, K, L, BM, BM_2, BK] where [M = 64, K = 32, L = 64, BM = 16, BM_2 = 64, BK = 32]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[M, K], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[M, K], f16>, !algebra.tensor<[M], f32>)
// CHECK-NEXT:     attributes {equals = @origin} {
// CHECK-NEXT:   %sum = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:       ins (%tx = %x[i_M * BM, 0] tile [BM, K])
// CHECK-NEXT:       outs ([i_M * BM, 0] of !algebra.tensor<[M, 1], f32>)
// CHECK-NEXT:       attributes {threads = 128 : i64} {
// CHECK-NEXT:     %sum_1 = algebra.reduce_sum %tx dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:     itgraph.yield %sum_1
// CHECK-NEXT:   }
// CHECK-NEXT:   %sums = algebra.reshape %sum to [M] : !algebra.tensor<[M], f32>
// CHECK-NEXT:   %o = itgraph.kernel (i_M = 0 to M ceildiv BM_2, i_K = 0 to K ceildiv BK)
// CHECK-NEXT:       ins (%ty = %y[i_M * BM_2, i_K * BK] tile [BM_2, BK], %ts = %sum[i_M * BM_2, 0] tile [BM_2, 1])
// CHECK-NEXT:       outs ([i_M * BM_2, i_K * BK] of !algebra.tensor<[M, K], f16>) {
// CHECK-NEXT:     %d = algebra.div %ty, %ts : !algebra.tensor<[BM_2, BK], f32>
// CHECK-NEXT:     %o_1 = algebra.cast %d to f16 : !algebra.tensor<[BM_2, BK], f16>
// CHECK-NEXT:     itgraph.yield %o_1
// CHECK-NEXT:   }
// CHECK-NEXT:   itgraph.return %o, %sums
// CHECK-NEXT: }

itgraph.plan @other [M] (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>) {
  itgraph.return %x
}

itgraph.plan @norm_1 [M, K, L, BM, BK] where [M = 64, K = 32, L = 64, BM = 64, BK = 32]
    (%y: !algebra.tensor<[M, K], f16>, %s: !algebra.tensor<[M, 1], f32>)
    -> (!algebra.tensor<[M, K], f16>)
    attributes {kernel = {of = "norm", number = 1 : i64, count = 2 : i64, symbols = ["M", "K", "L"], operands = ["input 1", "kernel 0 result 0"], results = ["output 0"], equals = @origin}} {
  %o = itgraph.kernel (i_M = 0 to M ceildiv BM, i_K = 0 to K ceildiv BK)
      ins (%ty = %y[i_M * BM, i_K * BK] tile [BM, BK],
           %ts = %s[i_M * BM, 0] tile [BM, 1])
      outs ([i_M * BM, i_K * BK] of !algebra.tensor<[M, K], f16>) {
    %d = algebra.div %ty, %ts
    %o = algebra.cast %d to f16
    itgraph.yield %o
  }
  itgraph.return %o
}

itgraph.plan @norm_0 [M, K, L, BM] where [M = 64, K = 32, L = 64, BM = 16]
    (%x: !algebra.tensor<[M, K], f16>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M], f32>)
    attributes {kernel = {of = "norm", number = 0 : i64, count = 2 : i64, symbols = ["M", "K", "L"], operands = ["input 0"], results = ["passed on", "output 1"], equals = @origin}} {
  %sum = itgraph.kernel (i_M = 0 to M ceildiv BM)
      ins (%tx = %x[i_M * BM, 0] tile [BM, K])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, 1], f32>)
      attributes {threads = 128 : i64} {
    %sum = algebra.reduce_sum %tx dim 1
    itgraph.yield %sum
  }
  %sums = algebra.reshape %sum to [M]
  itgraph.return %sum, %sums
}
