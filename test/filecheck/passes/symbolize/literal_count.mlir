// RUN: cleave-opt %s -p 'infer-reduced-dims,symbolize,superoptimize{split=inputs},specialize{sizes="M=8 K=16"},partition-split' | filecheck %s

// A split that is there before, into as many parts as a number says.

// CHECK:      algebra.graph @rowsum_1_split [M, K] where [2 | K, M = 8, K = 16]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, K], f32>)
// CHECK-NEXT:     -> (!algebra.tensor<[2, M, 1], f32>)
// CHECK:        %a = algebra.split %x dim 1 count 2 : !algebra.tensor<[2, M, K floordiv 2], f32>
// CHECK-NEXT:   %b = algebra.reduce_sum %a dim 2 : !algebra.tensor<[2, M, 1], f32>
// CHECK-NEXT:   algebra.return %b
// CHECK:      algebra.graph @rowsum_1_combine [M, K] where [2 | K, M = 8, K = 16]
// CHECK:        %c = algebra.reduce_sum %b dim 0 : !algebra.tensor<[1, M, 1], f32>
algebra.graph @rowsum [M, K] where [2 | K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[1, M, 1], f32>) {
  %a = algebra.split %x dim 1 count 2
  %b = algebra.reduce_sum %a dim 2
  %c = algebra.reduce_sum %b dim 0
  algebra.return %c
}
