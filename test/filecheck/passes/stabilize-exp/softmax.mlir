// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// Softmax over any dims, several in one graph, and relatives.

algebra.graph @softmax [M, L]
    (%s: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, L], f16>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @softmax [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %p, %2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @softmax_of_middle_dim [M, L, N]
    (%s: !algebra.tensor<[M, L, N], f32>) -> (!algebra.tensor<[M, L, N], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @softmax_of_middle_dim [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1, N], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1, N], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %p, %2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @softmax_of_two_dims [M, L, N]
    (%s: !algebra.tensor<[M, L, N], f32>) -> (!algebra.tensor<[M, L, N], f32>) {
  %p = algebra.exp %s
  %rows = algebra.reduce_sum %p dim 2
  %l = algebra.reduce_sum %rows dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @softmax_of_two_dims [
// CHECK:        %r = algebra.reference %s dim 2 : !algebra.tensor<[M, L, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 2 : !algebra.tensor<[M, L, 1], f32>
// CHECK-NEXT:   %r_1 = algebra.reference %r dim 1 : !algebra.tensor<[M, 1, 1], f32>
// CHECK-NEXT:   %1 = algebra.sub %r, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %1
// CHECK-NEXT:   %rows = algebra.mul %0, %rescale
// CHECK-NEXT:   %l = algebra.reduce_sum %rows dim 1 : !algebra.tensor<[M, 1, 1], f32>
// CHECK-NEXT:   %2 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %3 = algebra.sub %2, %r_1
// CHECK-NEXT:   %unseen = algebra.exp %3
// CHECK-NEXT:   %4 = algebra.add %l, %unseen
// CHECK-NEXT:   %5 = algebra.div %p, %4
// CHECK-NEXT:   %o = algebra.mul %5, %rescale
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @two_attentions [M, L, N, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %k2: !algebra.tensor<[N, D], f16>,
     %v2: !algebra.tensor<[N, D], f16>) -> (!algebra.tensor<[M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %first = algebra.div %a, %l
  %s2 = algebra.matmul %q, %k2 transpose_rhs
  %p2 = algebra.exp %s2
  %l2 = algebra.reduce_sum %p2 dim 1
  %a2 = algebra.matmul %p2, %v2
  %second = algebra.div %a2, %l2
  %o = algebra.add %first, %second
  algebra.return %o
}

// CHECK-LABEL: @two_attentions [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %first = algebra.div %a, %l
// CHECK-NEXT:   %s2 = algebra.matmul %q, %k2 transpose_rhs
// CHECK-NEXT:   %r_1 = algebra.reference %s2 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted_1 = algebra.sub %s2, %r_1
// CHECK-NEXT:   %p2 = algebra.exp %shifted_1
// CHECK-NEXT:   %l2 = algebra.reduce_sum %p2 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a2 = algebra.matmul %p2, %v2
// CHECK-NEXT:   %second = algebra.div %a2, %l2
// CHECK-NEXT:   %o = algebra.add %first, %second
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @attention_of_attention [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>) -> (!algebra.tensor<[M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %again = algebra.div %a, %l
  %s2 = algebra.matmul %again, %k transpose_rhs
  %p2 = algebra.exp %s2
  %l2 = algebra.reduce_sum %p2 dim 1
  %a2 = algebra.matmul %p2, %v
  %o = algebra.div %a2, %l2
  algebra.return %o
}

// CHECK-LABEL: @attention_of_attention [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %again = algebra.div %a, %l
// CHECK-NEXT:   %s2 = algebra.matmul %again, %k transpose_rhs
// CHECK-NEXT:   %r_1 = algebra.reference %s2 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted_1 = algebra.sub %s2, %r_1
// CHECK-NEXT:   %p2 = algebra.exp %shifted_1
// CHECK-NEXT:   %l2 = algebra.reduce_sum %p2 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a2 = algebra.matmul %p2, %v
// CHECK-NEXT:   %o = algebra.div %a2, %l2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @unit_length [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %pp = algebra.square %p
  %l = algebra.reduce_sum %pp dim 1
  %scale = algebra.rsqrt %l
  %o = algebra.mul %p, %scale
  algebra.return %o
}

// CHECK-LABEL: @unit_length [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %pp = algebra.square %p
// CHECK-NEXT:   %l = algebra.reduce_sum %pp dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -2.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.constant 2.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %2 = algebra.mul %r, %1
// CHECK-NEXT:   %3 = algebra.sub %0, %2
// CHECK-NEXT:   %unseen = algebra.exp %3
// CHECK-NEXT:   %4 = algebra.add %l, %unseen
// CHECK-NEXT:   %scale = algebra.rsqrt %4
// CHECK-NEXT:   %o = algebra.mul %p, %scale
// CHECK-NEXT:   algebra.return %o

// -----

// A maximum over other dims does not keep the sum of a row from zero.

algebra.graph @shifted_by_another_maximum [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %rows = algebra.reduce_max %s dim 1
  %m = algebra.reduce_max %rows dim 0
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @shifted_by_another_maximum [
// CHECK:        %rows = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %m = algebra.reduce_max %rows dim 0
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %r = algebra.reference %d dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %d, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %p, %2
// CHECK-NEXT:   algebra.return %o
