// RUN: cleave-opt %s -p 'partition-reductions{limit=1},partition-reductions{limit=1}' 2>&1 | filecheck %s

// Pieces get names that are free. A graph that is cut is not cut again.

algebra.graph @norm [M, K, N] where [M = 4096, K = 4096, N = 4096]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %xx = algebra.square %x
  %sum = algebra.reduce_sum %xx dim 1
  %rms = algebra.sqrt %sum
  %y = algebra.matmul %x, %w
  %o = algebra.div %y, %rms
  algebra.return %o
}
algebra.graph @norm_cut1 [M] where [M = 8]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}

// CHECK:      warning: pass 'partition-reductions': cut already, and not cut again: @norm
// CHECK:      algebra.graph @norm [
// CHECK:      algebra.graph @norm_cut1_2_0 [
// CHECK:          attributes {kernel = {of = "norm_cut1_2", {{.*}} cuts = @norm
// CHECK:      algebra.graph @norm_cut1_2_1 [
// CHECK:      algebra.graph @norm_unfused_0 [
// CHECK:      algebra.graph @norm_unfused_1 [
// CHECK:      algebra.graph @norm_cut1 [
// CHECK-NOT:  algebra.graph
