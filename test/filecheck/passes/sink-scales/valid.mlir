// RUN: cleave-opt %s -p sink-scales --split-input-file | filecheck %s

// The scale goes behind the mask, then behind the reference.
// CHECK-LABEL: algebra.graph @masked
// CHECK: %{{.*}} = algebra.select %mask, %qk, %low
// CHECK: %m = algebra.div %{{.*}}, %factor_1
algebra.graph @masked [M, L, D] where [D = 64]
    (%qk: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %width = algebra.constant D : !algebra.tensor<[], f32>
  %root = algebra.sqrt %width
  %low = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s0 = algebra.div %qk, %root
  %s = algebra.select %mask, %s0, %low
  %m = algebra.reference %s dim 1
  %d = algebra.sub %s, %m
  algebra.return %d
}

// -----

// Neither a negative number nor one that is not known goes behind a maximum.
// CHECK-LABEL: algebra.graph @kept
// CHECK: %a = algebra.mul %x, %minus
// CHECK-NEXT: algebra.reduce_max %a
// CHECK: %b = algebra.div %x, %size
// CHECK-NEXT: algebra.reduce_max %b
algebra.graph @kept [M, L, D]
    (%x: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>) {
  %minus = algebra.constant -2.0 : !algebra.tensor<[], f32>
  %size = algebra.constant D : !algebra.tensor<[], f32>
  %a = algebra.mul %x, %minus
  %o1 = algebra.reduce_max %a dim 1
  %b = algebra.div %x, %size
  %o2 = algebra.reduce_max %b dim 1
  algebra.return %o1, %o2
}
