// RUN: cleave-opt %s -p 'schedule-blocks{tile="s=1,M N=1"}' | filecheck %s

// A tile size without a number stays a symbol. One of 1 is written as 1, because such a
// dim broadcasts, and lies in one part of a split, which then is a reshape.
algebra.graph @split_k [M, K, N, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[s, M, N], f32>) {
  %xs = algebra.split %x dim 1 count s
  %ws = algebra.split %w dim 0 count s
  %part = algebra.matmul %xs, %ws
  algebra.return %part
}

// CHECK-LABEL: itgraph.plan @split_k [M, K, N, s, BM] where [s | K]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[s, M, N], f32>) {
// CHECK-NEXT:    %part = itgraph.kernel (i_s = 0 to s, i_M = 0 to M ceildiv BM, i_N = 0 to N)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, i_s * (K floordiv s)] tile [BM, K floordiv s], %tw = %w[i_s * (K floordiv s), i_N] tile [K floordiv s, 1])
// CHECK-NEXT:        outs ([i_s, i_M * BM, i_N] of !algebra.tensor<[s, M, N], f32>) {
// CHECK-NEXT:      %xs = algebra.reshape %tx to [1, BM, K floordiv s] : !algebra.tensor<[1, BM, K floordiv s], f16>
// CHECK-NEXT:      %ws = algebra.reshape %tw to [1, K floordiv s, 1] : !algebra.tensor<[1, K floordiv s, 1], f16>
// CHECK-NEXT:      %part_1 = algebra.matmul %xs, %ws : !algebra.tensor<[1, BM, 1], f32>
// CHECK-NEXT:      itgraph.yield %part_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %part
// CHECK-NEXT:  }
