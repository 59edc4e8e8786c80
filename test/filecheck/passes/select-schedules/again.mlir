// RUN: cleave-opt %s -p 'select-schedules{top-k=1},select-schedules{top-k=1}' 2>&1 | filecheck %s

// Plans get names that are free. A graph that has plans gets no others.

algebra.graph @sum [M, K] where [M = 64, K = 64]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}
algebra.graph @sum_plan0 [M] where [M = 64]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}

// CHECK:      warning: pass 'select-schedules': graph @sum has plans; not scheduled
// CHECK:      warning: pass 'select-schedules': graph @sum_plan0 has plans; not scheduled
// CHECK:      algebra.graph @sum [
// CHECK:      algebra.graph @sum_plan0 [
// CHECK:      itgraph.plan @sum_plan0_2 [
// CHECK:          attributes {equals = @sum,
// CHECK:      itgraph.plan @sum_plan0_plan0 [
// CHECK:          attributes {equals = @sum_plan0,
// CHECK-NOT:  itgraph.plan
