// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// Sums with references of their own are brought to the larger one before they are added.

algebra.graph @sink [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %sink: !algebra.tensor<[H, 1, 1], f32>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %z = algebra.exp %sink
  %sum = algebra.reduce_sum %p dim 2
  %l = algebra.add %sum, %z
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}

// CHECK-LABEL: @sink [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %r_1 = algebra.max %r, %sink : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %1 = algebra.sub %r, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %1
// CHECK-NEXT:   %sum = algebra.mul %0, %rescale
// CHECK-NEXT:   %2 = algebra.sub %sink, %r_1
// CHECK-NEXT:   %rescale_1 = algebra.exp %2
// CHECK-NEXT:   %l = algebra.add %sum, %rescale_1
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %3 = algebra.div %a, %l
// CHECK-NEXT:   %4 = algebra.log %l
// CHECK-NEXT:   %o = algebra.mul %3, %rescale
// CHECK-NEXT:   %lse = algebra.add %4, %r_1
// CHECK-NEXT:   algebra.return %o, %lse

// -----

algebra.graph @transposed_late [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %sink: !algebra.tensor<[H, 1, 1], f32>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %k, %q transpose_rhs
  %p = algebra.exp %s
  %z = algebra.exp %sink
  %sum = algebra.reduce_sum %p dim 1
  %column = algebra.transpose %sum permutation [0, 2, 1]
  %l = algebra.add %column, %z
  %a = algebra.matmul %p, %v transpose_lhs
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @transposed_late [
// CHECK:        %s = algebra.matmul %k, %q transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[H, 1, M], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %sum = algebra.reduce_sum %p dim 1 : !algebra.tensor<[H, 1, M], f32>
// CHECK-NEXT:   %0 = algebra.transpose %sum permutation [0, 2, 1]
// CHECK-NEXT:   %1 = algebra.transpose %r permutation [1, 0, 2]
// CHECK-NEXT:   %2 = algebra.reshape %1 to [H, M, 1]
// CHECK-NEXT:   %r_1 = algebra.max %2, %sink : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %3 = algebra.sub %2, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %3
// CHECK-NEXT:   %column = algebra.mul %0, %rescale
// CHECK-NEXT:   %4 = algebra.sub %sink, %r_1
// CHECK-NEXT:   %rescale_1 = algebra.exp %4
// CHECK-NEXT:   %l = algebra.add %column, %rescale_1
// CHECK-NEXT:   %a = algebra.matmul %p, %v transpose_lhs
// CHECK-NEXT:   %5 = algebra.div %a, %l
// CHECK-NEXT:   %o = algebra.mul %5, %rescale
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @cascade [M, L, N, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %k2: !algebra.tensor<[N, D], f16>,
     %v2: !algebra.tensor<[N, D], f16>)
    -> (!algebra.tensor<[M, D], f16>, !algebra.tensor<[M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %s2 = algebra.matmul %q, %k2 transpose_rhs
  %p2 = algebra.exp %s2
  %l1 = algebra.reduce_sum %p dim 1
  %l2 = algebra.reduce_sum %p2 dim 1
  %l = algebra.add %l1, %l2
  %a1 = algebra.matmul %p, %v
  %a2 = algebra.matmul %p2, %v2
  %a = algebra.add %a1, %a2
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}

// CHECK-LABEL: @cascade [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %s2 = algebra.matmul %q, %k2 transpose_rhs
// CHECK-NEXT:   %r_1 = algebra.reference %s2 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted_1 = algebra.sub %s2, %r_1
// CHECK-NEXT:   %p2 = algebra.exp %shifted_1
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %1 = algebra.reduce_sum %p2 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %r_2 = algebra.max %r, %r_1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %2 = algebra.sub %r, %r_2
// CHECK-NEXT:   %rescale = algebra.exp %2
// CHECK-NEXT:   %l1 = algebra.mul %0, %rescale
// CHECK-NEXT:   %3 = algebra.sub %r_1, %r_2
// CHECK-NEXT:   %rescale_1 = algebra.exp %3
// CHECK-NEXT:   %l2 = algebra.mul %1, %rescale_1
// CHECK-NEXT:   %l = algebra.add %l1, %l2
// CHECK-NEXT:   %4 = algebra.matmul %p, %v
// CHECK-NEXT:   %5 = algebra.matmul %p2, %v2
// CHECK-NEXT:   %a1 = algebra.mul %4, %rescale
// CHECK-NEXT:   %a2 = algebra.mul %5, %rescale_1
// CHECK-NEXT:   %a = algebra.add %a1, %a2
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   %6 = algebra.log %l
// CHECK-NEXT:   %lse = algebra.add %6, %r_2
// CHECK-NEXT:   algebra.return %o, %lse
