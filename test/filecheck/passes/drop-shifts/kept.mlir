// RUN: cleave-opt %s -p drop-shifts --split-input-file | filecheck %s

// Shifts that the results depend on stay, with the reason.

algebra.graph @divided_by_more [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %sum = algebra.reduce_sum %p dim 1
  %l = algebra.add %sum, %epsilon
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @divided_by_more [
// CHECK:          attributes {kept_shifts = ["%m: 'algebra.add' op %l: operand 0 is scaled by -%m but operand 1 is not scaled"]}
// CHECK:        %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %p = algebra.exp %d
// CHECK-NEXT:   %sum = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l = algebra.add %sum, %epsilon
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @not_divided [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>, %v: !algebra.tensor<[L, D], f32>)
    -> (!algebra.tensor<[M, D], f32>) {
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %o = algebra.matmul %p, %v
  algebra.return %o
}

// CHECK-LABEL: @not_divided [
// CHECK:          attributes {kept_shifts = ["%m: 'algebra.return' op: result 0 is scaled by -%m"]}
// CHECK:        %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %p = algebra.exp %d
// CHECK-NEXT:   %o = algebra.matmul %p, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @maximum_of_other_dim [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %m = algebra.reduce_max %s dim 0
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @maximum_of_other_dim [
// CHECK:          attributes {kept_shifts = ["%m: 'algebra.reduce_sum' op %l: reduces dim 1, along which operand 0 is scaled by -%m"]}
// CHECK:        %m = algebra.reduce_max %s dim 0
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %p = algebra.exp %d
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @finite_mask_behind [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %hidden = algebra.constant -1.0e+09 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %seen = algebra.select %mask, %d, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @finite_mask_behind [
// CHECK:          attributes {kept_shifts = ["%m: 'algebra.select' op %seen: operand 1 is shifted by -%m but operand 2 is not shifted"]}
// CHECK:        %hidden = algebra.constant -1000000000.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %mask = algebra.causal diagonal L - M
// CHECK-NEXT:   %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %seen = algebra.select %mask, %d, %hidden
// CHECK-NEXT:   %p = algebra.exp %seen
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

// Of a log-sum-exp only the sum of both is free.

algebra.graph @half_of_lse [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %log = algebra.log %l
  algebra.return %log
}

// CHECK-LABEL: @half_of_lse [
// CHECK:          attributes {kept_shifts = ["%m: 'algebra.return' op: result 0 is shifted by -%m"]}
// CHECK:        %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %p = algebra.exp %d
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %log = algebra.log %l
// CHECK-NEXT:   algebra.return %log

// -----

// It may be a mask of whole rows.

algebra.graph @bias_of_rows [M, L]
    (%s: !algebra.tensor<[M, L], f32>, %bias: !algebra.tensor<[M, 1], f32>)
    -> (!algebra.tensor<[M, L], f32>) {
  %half = algebra.constant 0.5 : !algebra.tensor<[], f32>
  %row = algebra.mul %bias, %half
  %d = algebra.add %s, %row
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @bias_of_rows [
// CHECK:        %half = algebra.constant 0.5 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %row = algebra.mul %bias, %half
// CHECK-NEXT:   %d = algebra.add %s, %row
// CHECK-NEXT:   %p = algebra.exp %d
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

// Its operands would be of two types.

algebra.graph @rounding_that_changes_a_type [M, K, N]
    (%x: !algebra.tensor<[M, K], bf16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %y = algebra.cast %x to f16
  %o = algebra.matmul %y, %w
  algebra.return %o
}

// CHECK-LABEL: @rounding_that_changes_a_type [
// CHECK:        %y = algebra.cast %x to f16
// CHECK-NEXT:   %o = algebra.matmul %y, %w
// CHECK-NEXT:   algebra.return %o
