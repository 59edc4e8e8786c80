// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// What a logarithm lacks is added where it loses no digits.

algebra.graph @log_softmax [M, L]
    (%s: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %o = algebra.sub %s, %lse
  algebra.return %o
}

// CHECK-LABEL: @log_softmax [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %lse = algebra.log %l
// CHECK-NEXT:   %o = algebra.sub %shifted, %lse
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @softmax_by_logarithm [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %d = algebra.sub %s, %lse
  %o = algebra.exp %d
  algebra.return %o
}

// CHECK-LABEL: @softmax_by_logarithm [
// CHECK:          attributes {kept_exponents = ["%o: its exponent moves along with the others"]}
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %lse = algebra.log %l
// CHECK-NEXT:   %d = algebra.sub %shifted, %lse
// CHECK-NEXT:   %o = algebra.exp %d
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @cross_entropy [M, V, D]
    (%x: !algebra.tensor<[M, D], f16>, %w: !algebra.tensor<[V, D], f16>,
     %target: !algebra.tensor<[M, 1], i32>) -> (!algebra.tensor<[M, 1], f32>) {
  %one = algebra.constant 1.0 : !algebra.tensor<[], f32>
  %column = algebra.iota dim 1 : !algebra.tensor<[1, V], i32>
  %j = algebra.cast %column to f32
  %t = algebra.cast %target to f32
  %off = algebra.sub %j, %t
  %far = algebra.abs %off
  %miss = algebra.min %far, %one
  %hit = algebra.sub %one, %miss
  %s = algebra.matmul %x, %w transpose_rhs
  %hits = algebra.mul %s, %hit
  %logit = algebra.reduce_sum %hits dim 1
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %loss = algebra.sub %lse, %logit
  algebra.return %loss
}

// CHECK-LABEL: @cross_entropy [
// CHECK:        %one = algebra.constant 1.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %column = algebra.iota dim 1
// CHECK-NEXT:   %j = algebra.cast %column to f32
// CHECK-NEXT:   %t = algebra.cast %target to f32
// CHECK-NEXT:   %off = algebra.sub %j, %t
// CHECK-NEXT:   %far = algebra.abs %off
// CHECK-NEXT:   %miss = algebra.min %far, %one
// CHECK-NEXT:   %hit = algebra.sub %one, %miss
// CHECK-NEXT:   %s = algebra.matmul %x, %w transpose_rhs
// CHECK-NEXT:   %hits = algebra.mul %s, %hit
// CHECK-NEXT:   %logit = algebra.reduce_sum %hits dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %lse = algebra.log %l
// CHECK-NEXT:   %shifted_1 = algebra.sub %logit, %r
// CHECK-NEXT:   %loss = algebra.sub %lse, %shifted_1
// CHECK-NEXT:   algebra.return %loss

// -----

algebra.graph @squared_lse [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[1, 1], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %squared = algebra.square %lse
  %o = algebra.reduce_sum %squared dim 0
  algebra.return %o
}

// CHECK-LABEL: @squared_lse [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.log %l
// CHECK-NEXT:   %lse = algebra.add %0, %r
// CHECK-NEXT:   %squared = algebra.square %lse
// CHECK-NEXT:   %o = algebra.reduce_sum %squared dim 0 : !algebra.tensor<[1, 1], f32>
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @free_energy [M, L]
    (%s: !algebra.tensor<[M, L], f32>, %temperature: !algebra.tensor<[M, 1], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %cold = algebra.div %s, %temperature
  %p = algebra.exp %cold
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %energy = algebra.mul %lse, %temperature
  %o = algebra.neg %energy
  algebra.return %o
}

// CHECK-LABEL: @free_energy [
// CHECK:        %cold = algebra.div %s, %temperature
// CHECK-NEXT:   %r = algebra.reference %cold dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %cold, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %lse = algebra.log %l
// CHECK-NEXT:   %energy = algebra.mul %lse, %temperature
// CHECK-NEXT:   %0 = algebra.neg %energy
// CHECK-NEXT:   %1 = algebra.mul %r, %temperature
// CHECK-NEXT:   %o = algebra.sub %0, %1
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @differences_of_lse [M, L, N]
    (%s: !algebra.tensor<[M, L], f32>, %z: !algebra.tensor<[M, N], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %q = algebra.exp %z
  %n = algebra.reduce_sum %q dim 1
  %lse2 = algebra.log %n
  %o = algebra.sub %lse, %lse2
  algebra.return %o
}

// CHECK-LABEL: @differences_of_lse [
// CHECK:        %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %lse = algebra.log %l
// CHECK-NEXT:   %r_1 = algebra.reference %z dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted_1 = algebra.sub %z, %r_1
// CHECK-NEXT:   %q = algebra.exp %shifted_1
// CHECK-NEXT:   %n = algebra.reduce_sum %q dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %lse2 = algebra.log %n
// CHECK-NEXT:   %0 = algebra.sub %lse, %lse2
// CHECK-NEXT:   %1 = algebra.add %0, %r
// CHECK-NEXT:   %o = algebra.sub %1, %r_1
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @bent_lse [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %two = algebra.constant 2.0 : !algebra.tensor<[], f32>
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %lse = algebra.log %l
  %positive = algebra.relu %lse
  %least = algebra.min %lse, %two
  %size = algebra.abs %lse
  %sum = algebra.add %positive, %least
  %o = algebra.mul %sum, %size
  algebra.return %o
}

// CHECK-LABEL: @bent_lse [
// CHECK:        %two = algebra.constant 2.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.log %l
// CHECK-NEXT:   %lse = algebra.add %0, %r
// CHECK-NEXT:   %positive = algebra.relu %lse
// CHECK-NEXT:   %least = algebra.min %lse, %two
// CHECK-NEXT:   %size = algebra.abs %lse
// CHECK-NEXT:   %sum = algebra.add %positive, %least
// CHECK-NEXT:   %o = algebra.mul %sum, %size
// CHECK-NEXT:   algebra.return %o
