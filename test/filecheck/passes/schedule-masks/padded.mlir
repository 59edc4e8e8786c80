// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64 L=32"},schedule-reductions,schedule-masks' | filecheck %s

// One tile pads the dim that is reduced: its tail is masked once as well.
// CHECK-LABEL: itgraph.plan @padded
// CHECK:      %s = algebra.mul %tx, %tx
// CHECK-NEXT: %s_1 = itgraph.tail %s dim 1 limit L fill -inf : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT: algebra.reduce_max %s_1
// CHECK:      %d = algebra.sub %s_1, %r
// CHECK-NEXT: %p = algebra.exp %d
// CHECK-NEXT: algebra.reduce_sum %p dim 1
algebra.graph @padded [M, L] where [M = 256, L = 20]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %s = algebra.mul %x, %x
  %r = algebra.reference %s dim 1
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  algebra.return %l
}
