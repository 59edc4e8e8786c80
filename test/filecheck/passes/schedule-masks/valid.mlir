// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64"},schedule-reductions{tile="L=32"},schedule-masks' --split-input-file | filecheck %s

// A row sees the keys up to its own position: later tiles are not visited, and only the
// tiles that the diagonal crosses are masked. Later rows take longer, and start first.
// CHECK-LABEL: itgraph.plan @causal
// CHECK: descending = ["i_M"]
// CHECK: itgraph.loop (i_L = 0 to (i_M * BM + BM) ceildiv BL)
// CHECK: %mask = algebra.causal diagonal i_M * BM - i_L * BL
// CHECK-NEXT: algebra.select %mask, %{{.*}}, %low {guarded}
algebra.graph @causal [M, L] where [M = 256, L = 256]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %low = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal 0 : !algebra.tensor<[M, L], i1>
  %s = algebra.select %mask, %x, %low
  %p = algebra.exp %s
  %o = algebra.reduce_sum %p dim 1
  algebra.return %o
}

// -----

// CHECK-LABEL: itgraph.plan @window
// CHECK: itgraph.loop (i_L = max((i_M * BM - 39) floordiv BL, 0) to (i_M * BM + BM) ceildiv BL)
algebra.graph @window [M, L] where [M = 256, L = 256]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.window diagonal 0 size 40 : !algebra.tensor<[M, L], i1>
  %s = algebra.select %mask, %x, %zero
  %o = algebra.reduce_sum %s dim 1
  algebra.return %o
}

// -----

// A part of a mask is looked through: only tiles that the diagonal crosses are masked.
// CHECK-LABEL: itgraph.plan @split_causal
// CHECK: descending = ["i_M"]
// CHECK: itgraph.loop (i_L = 0 to min((i_M * BM - i_s * (L floordiv s) + BM + L - M) ceildiv BL, (L floordiv s) ceildiv BL))
// CHECK: %seen = algebra.reshape %mask to [1, BM, BL]
// CHECK: algebra.select %seen, %{{.*}}, %zero {guarded}
algebra.graph @split_causal [M, L, s] where [M = 256, L = 512, s = 2, s | L]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[s, M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %seen = algebra.split %mask dim 1 count s
  %xs = algebra.split %x dim 1 count s
  %y = algebra.select %seen, %xs, %zero
  %o = algebra.reduce_sum %y dim 2
  algebra.return %o
}

// -----

// CHECK-LABEL: itgraph.plan @split_window
// CHECK: %seen = algebra.reshape %mask to [1, BM, BL]
// CHECK: algebra.select %seen, %{{.*}}, %zero {guarded}
algebra.graph @split_window [M, L, s] where [M = 256, L = 512, s = 2, s | L]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[s, M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.window diagonal L - M size 200 : !algebra.tensor<[M, L], i1>
  %seen = algebra.split %mask dim 1 count s
  %xs = algebra.split %x dim 1 count s
  %y = algebra.select %seen, %xs, %zero
  %o = algebra.reduce_sum %y dim 2
  algebra.return %o
}

// -----

// The first 156 rows see nothing, but their threadblocks visit one tile.
// CHECK-LABEL: itgraph.plan @nothing
// CHECK: itgraph.loop (i_L = 0 to max((i_M * BM + BM + L - M) ceildiv BL, 1))
algebra.graph @nothing [M, L] where [M = 256, L = 100]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s = algebra.select %mask, %x, %zero
  %o = algebra.reduce_sum %s dim 1
  algebra.return %o
}

// -----

// Masked elements count as e ** 0: every tile is visited.
// CHECK-LABEL: itgraph.plan @counted
// CHECK-NOT: descending
// CHECK: itgraph.loop (i_L = 0 to L ceildiv BL)
algebra.graph @counted [M, L] where [M = 256, L = 256]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal 0 : !algebra.tensor<[M, L], i1>
  %s = algebra.select %mask, %x, %zero
  %p = algebra.exp %s
  %o = algebra.reduce_sum %p dim 1
  algebra.return %o
}

// -----

// Only the last tile has a tail.
// CHECK-LABEL: itgraph.plan @tail
// CHECK: itgraph.tail %{{.*}} dim 1 limit L - i_L * BL fill 0.0 {guarded}
algebra.graph @tail [M, L] where [M = 256, L = 100]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %p = algebra.exp %x
  %o = algebra.reduce_sum %p dim 1
  algebra.return %o
}

// -----

// The scores are masked once: behind the exponential of -inf the sum needs no mask.
// CHECK-LABEL: itgraph.plan @shared
// CHECK:      %s = algebra.mul %tx_1, %tx_1
// CHECK-NEXT: %s_1 = itgraph.tail %s dim 1 limit L - i_L * BL fill -inf {guarded}
// CHECK-NEXT: algebra.reduce_max %s_1
// CHECK:      %d = algebra.sub %s_1, %r_2
// CHECK-NEXT: %p = algebra.exp %d
// CHECK-NEXT: algebra.reduce_sum %p dim 1
algebra.graph @shared [M, L] where [M = 256, L = 100]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %s = algebra.mul %x, %x
  %r = algebra.reference %s dim 1
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  algebra.return %l
}

// -----

// A product of such a 0 with what is not known to be finite is masked again.
// CHECK-LABEL: itgraph.plan @product
// CHECK:      %p = algebra.exp
// CHECK-NEXT: %w = algebra.div %tx_1, %ty_1
// CHECK-NEXT: %n = algebra.mul %p, %w
// CHECK-NEXT: %n_1 = itgraph.tail %n dim 1 limit L - i_L * BL fill 0.0 {guarded}
// CHECK-NEXT: algebra.reduce_sum %n_1 dim 1
algebra.graph @product [M, L] where [M = 256, L = 100]
    (%x: !algebra.tensor<[M, L], f32>, %y: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %s = algebra.mul %x, %x
  %r = algebra.reference %s dim 1
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %w = algebra.div %x, %y
  %n = algebra.mul %p, %w
  %l = algebra.reduce_sum %n dim 1
  algebra.return %l
}

// -----

// Zeros that were loaded beyond the end stay for those that count on them.
// CHECK-LABEL: itgraph.plan @loaded
// CHECK:      %tx_2 = itgraph.tail %tx_1 dim 1 limit L - i_L * BL fill -inf {guarded}
// CHECK-NEXT: %m_2 = algebra.reduce_max %tx_2
// CHECK-NEXT: %l_2 = algebra.reduce_sum %tx_1
algebra.graph @loaded [M, L] where [M = 256, L = 100]
    (%x: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>) {
  %m = algebra.reduce_max %x dim 1
  %l = algebra.reduce_sum %x dim 1
  algebra.return %m, %l
}
