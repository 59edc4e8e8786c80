// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// Exponentials that are only shifted together, of different bases and degrees.

algebra.graph @logistic [M, N]
    (%a: !algebra.tensor<[M, N], f32>, %b: !algebra.tensor<[M, N], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %p = algebra.exp %a
  %q = algebra.exp %b
  %l = algebra.add %p, %q
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @logistic [
// CHECK:        %r = algebra.max %a, %b : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+30 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %r_1 = algebra.max %r, %0 : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   %1 = algebra.sub %a, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.sub %b, %r_1
// CHECK-NEXT:   %rescale_1 = algebra.exp %2
// CHECK-NEXT:   %l = algebra.add %rescale, %rescale_1
// CHECK-NEXT:   %3 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %4 = algebra.sub %3, %r_1
// CHECK-NEXT:   %unseen = algebra.exp %4
// CHECK-NEXT:   %5 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %rescale, %5
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @mixture [M, L]
    (%s: !algebra.tensor<[M, L], f32>, %z: !algebra.tensor<[M, L], f32>,
     %v: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %p = algebra.exp %s
  %q = algebra.exp2 %z
  %both = algebra.add %p, %q
  %l = algebra.reduce_sum %both dim 1
  %weighted = algebra.mul %both, %v
  %a = algebra.reduce_sum %weighted dim 1
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @mixture [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %0 = algebra.exp %shifted
// CHECK-NEXT:   %1 = algebra.constant 0.6931471805599453 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %2 = algebra.mul %z, %1
// CHECK-NEXT:   %r_1 = algebra.max %r, %2 : !algebra.tensor<[M, L], f32>
// CHECK-NEXT:   %3 = algebra.sub %r, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %3
// CHECK-NEXT:   %p = algebra.mul %0, %rescale
// CHECK-NEXT:   %4 = algebra.sub %2, %r_1
// CHECK-NEXT:   %rescale_1 = algebra.exp %4
// CHECK-NEXT:   %5 = algebra.add %p, %rescale_1
// CHECK-NEXT:   %r_2 = algebra.reference %r_1 dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %6 = algebra.sub %r_1, %r_2
// CHECK-NEXT:   %rescale_2 = algebra.exp %6
// CHECK-NEXT:   %both = algebra.mul %5, %rescale_2
// CHECK-NEXT:   %l = algebra.reduce_sum %both dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %7 = algebra.mul %5, %v
// CHECK-NEXT:   %weighted = algebra.mul %7, %rescale_2
// CHECK-NEXT:   %a = algebra.reduce_sum %weighted dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %8 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %9 = algebra.sub %8, %r_2
// CHECK-NEXT:   %unseen = algebra.exp %9
// CHECK-NEXT:   %10 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %10
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @norms_of_two_orders [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %two = algebra.constant 2.0 : !algebra.tensor<[], f32>
  %double = algebra.mul %s, %two
  %p = algebra.exp %s
  %pp = algebra.exp %double
  %l1 = algebra.reduce_sum %p dim 1
  %l2 = algebra.reduce_sum %pp dim 1
  %root = algebra.sqrt %l2
  %l = algebra.add %l1, %root
  %o = algebra.div %l1, %l
  algebra.return %o
}

// CHECK-LABEL: @norms_of_two_orders [
// CHECK:        %two = algebra.constant 2.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %double = algebra.mul %s, %two
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %r_1 = algebra.reference %double dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted_1 = algebra.sub %double, %r_1
// CHECK-NEXT:   %pp = algebra.exp %shifted_1
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l2 = algebra.reduce_sum %pp dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %1 = algebra.sqrt %l2
// CHECK-NEXT:   %2 = algebra.constant 0.5 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %3 = algebra.mul %r_1, %2
// CHECK-NEXT:   %r_2 = algebra.max %r, %3 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %4 = algebra.sub %r, %r_2
// CHECK-NEXT:   %rescale = algebra.exp %4
// CHECK-NEXT:   %l1 = algebra.mul %0, %rescale
// CHECK-NEXT:   %5 = algebra.sub %3, %r_2
// CHECK-NEXT:   %rescale_1 = algebra.exp %5
// CHECK-NEXT:   %root = algebra.mul %1, %rescale_1
// CHECK-NEXT:   %l = algebra.add %l1, %root
// CHECK-NEXT:   %6 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %7 = algebra.sub %6, %r_2
// CHECK-NEXT:   %unseen = algebra.exp %7
// CHECK-NEXT:   %8 = algebra.add %l, %unseen
// CHECK-NEXT:   %9 = algebra.div %0, %8
// CHECK-NEXT:   %o = algebra.mul %9, %rescale
// CHECK-NEXT:   algebra.return %o

// -----

// Nothing is summed up: what is left is one exponential of the difference.

algebra.graph @ratio [M, N]
    (%a: !algebra.tensor<[M, N], f32>, %b: !algebra.tensor<[M, 1], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %p = algebra.exp %a
  %q = algebra.exp %b
  %o = algebra.div %p, %q
  algebra.return %o
}

// CHECK-LABEL: @ratio [
// CHECK:        %0 = algebra.sub %a, %b
// CHECK-NEXT:   %rescale = algebra.exp %0
// CHECK-NEXT:   algebra.return %rescale
