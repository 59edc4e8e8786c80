// RUN: cleave-opt %s -p sink-scales --split-input-file | filecheck %s

// The scale goes behind the mask, then behind the reference and the difference.
// CHECK-LABEL: algebra.graph @masked
// CHECK: %{{.*}} = algebra.select %mask, %qk, %low
// CHECK-NEXT: %{{.*}} = algebra.reference %
// CHECK-NEXT: %{{.*}} = algebra.sub %
// CHECK-NEXT: %d = algebra.div %{{.*}}, %root
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

// -----

// Only multiples by one value, and it is kept as it is written.
// CHECK-LABEL: algebra.graph @differences
// CHECK-DAG: %[[ONE:.*]] = algebra.sub %x, %y
// CHECK-DAG: %same = algebra.mul %[[ONE]], %minus
// CHECK-DAG: %other = algebra.sub %a, %c
// CHECK-DAG: %unlike = algebra.sub %a, %e
// CHECK-DAG: %unknown = algebra.sub %f, %g
algebra.graph @differences [M, L]
    (%x: !algebra.tensor<[M, L], f32>, %y: !algebra.tensor<[M, 1], f32>,
     %tau: !algebra.tensor<[], f32>)
    -> (!algebra.tensor<[M, L], f32>, !algebra.tensor<[M, L], f32>,
        !algebra.tensor<[M, L], f32>, !algebra.tensor<[M, L], f32>) {
  %minus = algebra.constant -2.0 : !algebra.tensor<[], f32>
  %three = algebra.constant 3.0 : !algebra.tensor<[], f32>
  %a = algebra.mul %x, %minus
  %b = algebra.mul %y, %minus
  %same = algebra.sub %a, %b
  %c = algebra.mul %y, %three
  %other = algebra.sub %a, %c
  %e = algebra.div %y, %minus
  %unlike = algebra.sub %a, %e
  %f = algebra.mul %x, %tau
  %g = algebra.mul %y, %tau
  %unknown = algebra.sub %f, %g
  algebra.return %same, %other, %unlike, %unknown
}

// -----

// What a row without keys has for a reference would not be far below all exponents.
// CHECK-LABEL: algebra.graph @tiny
// CHECK: %s = algebra.mul %x, %scale
// CHECK-NEXT: %m = algebra.reference %s
// CHECK-NEXT: %d = algebra.sub %s, %m
algebra.graph @tiny [M, L]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %scale = algebra.constant 1.0e-12 : !algebra.tensor<[], f32>
  %s = algebra.mul %x, %scale
  %m = algebra.reference %s dim 1
  %d = algebra.sub %s, %m
  algebra.return %d
}
