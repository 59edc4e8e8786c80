// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=16"},plan-memory' | filecheck %s

// Two reductions decide two layouts: what one of them gave to each row is read from SMEM
// by the tile that the other one made. Rows of that tile itself are at hand.
algebra.graph @combined [s, M, D] where [s = 8, M = 64, D = 128]
    (%a: !algebra.tensor<[s, M, D], f32>, %l: !algebra.tensor<[s, M, 1], f32>)
    -> (!algebra.tensor<[1, M, D], f32>) {
  %asum = algebra.reduce_sum %a dim 0
  %lsum = algebra.reduce_sum %l dim 0
  %n = algebra.div %asum, %lsum
  %m = algebra.reduce_max %n dim 2
  %o = algebra.sub %n, %m
  algebra.return %o
}

// CHECK:      %asum = algebra.reduce_sum %ta dim 0
// CHECK-NEXT: %lsum = algebra.reduce_sum %tl dim 0
// CHECK-NEXT: %lsum_1 = itgraph.copy %lsum to smem<linear>
// CHECK-NEXT: %n = algebra.div %asum, %lsum_1
// CHECK-NEXT: %m = algebra.reduce_max %n dim 2
// CHECK-NEXT: %o_1 = algebra.sub %n, %m
