// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// Exponents that are left alone, and why.

algebra.graph @not_divided [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>, %v: !algebra.tensor<[L, D], f32>)
    -> (!algebra.tensor<[M, D], f32>) {
  %p = algebra.exp %s
  %o = algebra.matmul %p, %v
  algebra.return %o
}

// CHECK-LABEL: @not_divided [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.return' op: result 0 would be scaled by %p"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %o = algebra.matmul %p, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @divided_by_more [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
  %p = algebra.exp %s
  %sum = algebra.reduce_sum %p dim 1
  %l = algebra.add %sum, %epsilon
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @divided_by_more [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.add' op %l: operand 0 is scaled by %p but operand 1 is not scaled"]}
// CHECK:        %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %p = algebra.exp %s
// CHECK-NEXT:   %sum = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l = algebra.add %sum, %epsilon
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @divided_twice [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %p, %l
  %o = algebra.div %n, %l
  algebra.return %o
}

// CHECK-LABEL: @divided_twice [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.return' op: result 0 would be scaled by -%p"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %n = algebra.div %p, %l
// CHECK-NEXT:   %o = algebra.div %n, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @sink_without_exp [M, L]
    (%s: !algebra.tensor<[M, L], f32>, %sink: !algebra.tensor<[1, 1], f32>)
    -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %sum = algebra.reduce_sum %p dim 1
  %l = algebra.add %sum, %sink
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @sink_without_exp [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.add' op %l: operand 0 is scaled by %p but operand 1 is not scaled"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %sum = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l = algebra.add %sum, %sink
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @bent [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %t = algebra.tanh %p
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %t, %l
  algebra.return %o
}

// CHECK-LABEL: @bent [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.tanh' op %t: operand 0 is scaled by %p, and it has no law for that"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %t = algebra.tanh %p
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %t, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @exponential_is_a_result [M, L]
    (%s: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[M, L], f32>, !algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o, %p
}

// CHECK-LABEL: @exponential_is_a_result [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.return' op: result 1 would be scaled by %p"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o, %p

// -----

algebra.graph @sigmoid [M, N]
    (%x: !algebra.tensor<[M, N], f32>) -> (!algebra.tensor<[M, N], f32>) {
  %one = algebra.constant 1.0 : !algebra.tensor<[], f32>
  %n = algebra.neg %x
  %p = algebra.exp %n
  %l = algebra.add %one, %p
  %o = algebra.div %one, %l
  algebra.return %o
}

// CHECK-LABEL: @sigmoid [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.add' op %l: operand 0 is not scaled but operand 1 is scaled by %p"]}
// CHECK:        %one = algebra.constant 1.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %n = algebra.neg %x
// CHECK-NEXT:   %p = algebra.exp %n
// CHECK-NEXT:   %l = algebra.add %one, %p
// CHECK-NEXT:   %o = algebra.div %one, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @exponential_of_exponential [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %pp = algebra.exp %p
  %l = algebra.reduce_sum %pp dim 1
  %o = algebra.div %pp, %l
  algebra.return %o
}

// CHECK-LABEL: @exponential_of_exponential [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.exp' op %pp: operand 0 is scaled by %p, and it has no law for that"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %r = algebra.reference %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %p, %r
// CHECK-NEXT:   %pp = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %pp dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %pp, %2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @regrouped [M, N, L]
    (%s: !algebra.tensor<[M * N, L], f32>) -> (!algebra.tensor<[M, N, 1], f32>) {
  %p = algebra.exp %s
  %g = algebra.reshape %p to [M, N, L]
  %l = algebra.reduce_sum %g dim 2
  %o = algebra.div %l, %l
  algebra.return %o
}

// CHECK-LABEL: @regrouped [
// CHECK:          attributes {kept_exponents = ["%p: 'algebra.reshape' op %g: regroups dim 0, along which operand 0 is scaled by %p"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %g = algebra.reshape %p to [M, N, L]
// CHECK-NEXT:   %l = algebra.reduce_sum %g dim 2 : !algebra.tensor<[M, N, 1], f32>
// CHECK-NEXT:   %o = algebra.div %l, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @only_one_of_two [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>, %x: !algebra.tensor<[M, D], f32>)
    -> (!algebra.tensor<[M, L], f32>, !algebra.tensor<[M, D], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  %e = algebra.exp %x
  algebra.return %o, %e
}

// CHECK-LABEL: @only_one_of_two [
// CHECK:          attributes {kept_exponents = ["%e: 'algebra.return' op: result 1 would be scaled by %e"]}
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %p, %2
// CHECK-NEXT:   %e = algebra.exp %x
// CHECK-NEXT:   algebra.return %o, %e

// -----

algebra.graph @shifted_by_a_maximum [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @shifted_by_a_maximum [
// CHECK:          attributes {kept_exponents = ["%p: shifted by a maximum already"]}
// CHECK:        %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %d = algebra.sub %s, %m
// CHECK-NEXT:   %p = algebra.exp %d
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @scaled_and_shifted [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %c = algebra.constant 0.1803 : !algebra.tensor<[], f32>
  %m = algebra.reduce_max %s dim 1
  %sc = algebra.mul %s, %c
  %mc = algebra.mul %m, %c
  %d = algebra.sub %sc, %mc
  %p = algebra.exp2 %d
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @scaled_and_shifted [
// CHECK:          attributes {kept_exponents = ["%p: shifted by a maximum already"]}
// CHECK:        %c = algebra.constant 0.1803 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %sc = algebra.mul %s, %c
// CHECK-NEXT:   %mc = algebra.mul %m, %c
// CHECK-NEXT:   %d = algebra.sub %sc, %mc
// CHECK-NEXT:   %p = algebra.exp2 %d
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @nothing_to_shift [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %y = algebra.matmul %x, %w
  %o = algebra.silu %y
  algebra.return %o
}

// CHECK-LABEL: @nothing_to_shift [
// CHECK:        %y = algebra.matmul %x, %w
// CHECK-NEXT:   %o = algebra.silu %y
// CHECK-NEXT:   algebra.return %o
