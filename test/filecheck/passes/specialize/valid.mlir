// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize' | filecheck %s
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{counts=3,6 budget=60}' | filecheck %s --check-prefix=COUNTS
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{most-parts=2}' | filecheck %s --check-prefix=MOST
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{least-part=4}' | filecheck %s --check-prefix=LEAST
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{apart=false},partition-split' | filecheck %s --check-prefix=TOGETHER
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{counts=5}' 2>&1 | filecheck %s --check-prefix=NONE

algebra.graph @rowsum [M, K] where [M = 8, K = 12]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}

// CHECK:      algebra.graph @rowsum [M, K] where [M = 8, K = 12]
// CHECK:      algebra.graph @rowsum_1 [M, K] where [M = 8, K = 12]
// CHECK:          attributes {equals = @rowsum, tested = [{M = 8 : i64, K = 12 : i64}]}
// CHECK:      algebra.graph @rowsum_2_s2 [M, K, s] where [M = 8, K = 12, s | K, s = 2]
// CHECK:          tested = [{M = 8 : i64, K = 12 : i64, s = 2 : i64}]}
// CHECK-NEXT:   %0 = algebra.split %x dim 1 count s : !algebra.tensor<[s, M, K floordiv s], f32>
// CHECK:      algebra.graph @rowsum_2_s3 [M, K, s] where [M = 8, K = 12, s | K, s = 3]
// CHECK:      algebra.graph @rowsum_2_s4 [M, K, s] where [M = 8, K = 12, s | K, s = 4]
// CHECK:      algebra.graph @rowsum_2_s6 [M, K, s] where [M = 8, K = 12, s | K, s = 6]
// CHECK-NOT:  algebra.graph

// Tensors of at most 60 elements: half of the 12, which 3 divides, but not in 6 parts,
// which would have 1 element each.
// COUNTS:     algebra.graph @rowsum_2_s3 [M, K, s]
// COUNTS:         tested = [{M = 8 : i64, K = 6 : i64, s = 3 : i64}]}
// COUNTS:     algebra.graph @rowsum_2_s6 [M, K, s]
// COUNTS:         tested = [{M = 4 : i64, K = 12 : i64, s = 6 : i64}]}
// COUNTS-NOT: algebra.graph

// NONE:       warning: pass 'specialize': graph @rowsum_2 is dropped: no count divides K, which is 12
// NONE:       algebra.graph @rowsum_1
// NONE-NOT:   algebra.graph

// MOST:       algebra.graph @rowsum_2_s2 [M, K, s]
// MOST-NOT:   algebra.graph

// LEAST:      algebra.graph @rowsum_2_s2 [M, K, s]
// LEAST:      algebra.graph @rowsum_2_s3 [M, K, s]
// LEAST-NOT:  algebra.graph

// Tested with the least and the most parts; pieces have the same choices.
// TOGETHER:     algebra.graph @rowsum_2_split [M, K, s] where [M = 8, K = 12, s | K]
// TOGETHER:         choices = {s = array<i64: 2, 3, 4, 6>}
// TOGETHER:     algebra.graph @rowsum_2_combine [M, K, s] where [M = 8, K = 12, s | K]
// TOGETHER:         choices = {s = array<i64: 2, 3, 4, 6>}
// TOGETHER-NOT: algebra.graph
