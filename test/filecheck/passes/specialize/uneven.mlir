// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{counts=2,3,4,8}' --split-input-file | filecheck %s

// 300 divides by 2, 3 and 4, but not by 8, whose parts of at least 64 would not all hold
// something. 310 divides by 2: 4 parts of 128 would leave the last with nothing, too.

algebra.graph @even [M, K] where [M = 8, K = 300]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}

// CHECK:      algebra.graph @even_2_s2 [M, K, s] where [M = 8, K = 300, s | K, s = 2]
// CHECK:      algebra.graph @even_2_s3 [M, K, s] where [M = 8, K = 300, s | K, s = 3]
// CHECK:      algebra.graph @even_2_s4 [M, K, s] where [M = 8, K = 300, s | K, s = 4]
// CHECK-NOT:  algebra.graph @even

// -----

// Zeros beyond the end of what is loaded need no mask in a sum.

algebra.graph @uneven [M, K] where [M = 8, K = 310]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}

// CHECK:      algebra.graph @uneven_2_s2 [M, K, s] where [M = 8, K = 310, s | K, s = 2]
// CHECK:      algebra.graph @uneven_2_s3 [M, K, s, C] where [M = 8, K = 310, s = 3, C = 128]
// CHECK:          tested = [{M = 8 : i64, K = 310 : i64, s = 3 : i64, C = 128 : i64}]}
// CHECK-NEXT:   %0 = algebra.split %x dim 1 count s chunk C : !algebra.tensor<[s, M, C], f32>
// CHECK-NEXT:   %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
// CHECK-NOT:  algebra.graph @uneven

// -----

// An exponential is 0 where its exponent is -inf, which serves all that reads it.

algebra.graph @exp [M, K] where [M = 8, K = 310]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %p = algebra.exp %x
  %y = algebra.reduce_sum %p dim 1
  algebra.return %y
}

// CHECK:      algebra.graph @exp_{{[0-9]+}}_s3 [M, K, s, C] where [M = 8, K = 310, s = 3, C = 128]
// CHECK:        %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %within = algebra.within part 0 dim 2 chunk C limit K : !algebra.tensor<[s, 1, C], i1>
// CHECK-NEXT:   %[[X:.*]] = algebra.split %x dim 1 count s chunk C : !algebra.tensor<[s, M, C], f32>
// CHECK-NEXT:   %[[S:.*]] = algebra.select %within, %[[X]], %hidden : !algebra.tensor<[s, M, C], f32>
// CHECK-NEXT:   %[[P:.*]] = algebra.exp %[[S]] : !algebra.tensor<[s, M, C], f32>
// CHECK-NEXT:   algebra.reduce_sum %[[P]] dim 2 : !algebra.tensor<[s, M, 1], f32>
