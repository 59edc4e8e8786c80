// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=16"},schedule-reductions{tile="C=64"},schedule-masks' --split-input-file | filecheck %s

// The last part ends where the tensor does: behind it, nothing but zeros is loaded.

algebra.graph @product [M, N, K, s, C] where [K = 4099, s = 4, C = 1152]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[s, M, N], f32>) {
  %xs = algebra.split %x dim 1 count s chunk C
  %ws = algebra.split %w dim 0 count s chunk C
  %p = algebra.matmul %xs, %ws
  algebra.return %p
}

// CHECK:       itgraph.plan @product
// CHECK:         itgraph.loop (i_C = 0 to min(C ceildiv BC, (K - i_s * C) ceildiv BC))

// -----

// An exponential of zeros is something, so that nothing is left out.

algebra.graph @sum_of_exp [M, K, s, C] where [K = 4099, s = 4, C = 1152]
    (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[s, M, 1], f32>) {
  %xs = algebra.split %x dim 1 count s chunk C
  %p = algebra.exp %xs
  %l = algebra.reduce_sum %p dim 2
  algebra.return %l
}

// CHECK:       itgraph.plan @sum_of_exp
// CHECK:         itgraph.loop (i_C = 0 to C ceildiv BC)

// -----

// A mask decides it for whatever is masked, and only tiles at the end are masked.

algebra.graph @masked [M, K, s, C] where [K = 4099, s = 4, C = 1152]
    (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[s, M, 1], f32>) {
  %within = algebra.within part 0 dim 2 chunk C limit K : !algebra.tensor<[s, 1, C], i1>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %xs = algebra.split %x dim 1 count s chunk C
  %seen = algebra.select %within, %xs, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 2
  algebra.return %l
}

// CHECK:       itgraph.plan @masked
// CHECK:         itgraph.loop (i_C = 0 to min(C ceildiv BC, (K - i_s * C) ceildiv BC))
// CHECK:           %within = algebra.within part 0 dim 2 chunk C limit K - i_C * BC - i_s * C : !algebra.tensor<[1, 1, BC], i1>
// CHECK:           algebra.select %within, %{{.*}}, %hidden {guarded} : !algebra.tensor<[1, BM, BC], f32>
