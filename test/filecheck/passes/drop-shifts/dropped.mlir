// RUN: cleave-opt %s -p drop-shifts --split-input-file | filecheck %s

// Shifts that change nothing, proved by degrees, and roundings.


algebra.graph @attention [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>) -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %m = algebra.reduce_max %s dim 2
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %narrow = algebra.cast %n to f16
  %o = algebra.matmul %narrow, %v
  %rounded = algebra.cast %o to f16
  algebra.return %rounded
}

// CHECK-LABEL: @attention [
// CHECK:          attributes {dropped = ["%narrow: rounds", "%rounded: rounds", "%m: shifts by [H, M, 1]"]}
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %n = algebra.div %p, %l
// CHECK-NEXT:   %o = algebra.matmul %n, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @scaled_behind [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %temperature: !algebra.tensor<[H, 1, 1], f32>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %width = algebra.constant D : !algebra.tensor<[], f32>
  %root = algebra.sqrt %width
  %qk = algebra.matmul %q, %k transpose_rhs
  %m = algebra.reduce_max %qk dim 2
  %d = algebra.sub %qk, %m
  %scaled = algebra.div %d, %root
  %s = algebra.div %scaled, %temperature
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @scaled_behind [
// CHECK:          attributes {dropped = ["%m: shifts by [H, M, 1]"]}
// CHECK:        %width = algebra.constant D : !algebra.tensor<[], f32>
// CHECK-NEXT:   %root = algebra.sqrt %width
// CHECK-NEXT:   %qk = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %scaled = algebra.div %qk, %root
// CHECK-NEXT:   %s = algebra.div %scaled, %temperature
// CHECK-NEXT:   %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @lse_base_2 [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %log2e = algebra.constant 1.4426950408889634 : !algebra.tensor<[], f32>
  %ln2 = algebra.constant 0.6931471805599453 : !algebra.tensor<[], f32>
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %b = algebra.mul %d, %log2e
  %p = algebra.exp2 %b
  %l = algebra.reduce_sum %p dim 1
  %log = algebra.log2 %l
  %natural = algebra.mul %log, %ln2
  %o = algebra.add %m, %natural
  algebra.return %o
}

// CHECK-LABEL: @lse_base_2 [
// CHECK:          attributes {dropped = ["%m: shifts by [M, 1]"]}
// CHECK:        %log2e = algebra.constant 1.4426950408889634 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %ln2 = algebra.constant 0.6931471805599453 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %b = algebra.mul %s, %log2e
// CHECK-NEXT:   %p = algebra.exp2 %b
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %log = algebra.log2 %l
// CHECK-NEXT:   %natural = algebra.mul %log, %ln2
// CHECK-NEXT:   algebra.return %natural

// -----

algebra.graph @masked [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>, !algebra.tensor<[M, 1], f32>) {
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %least = algebra.constant -1.0e+30 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.select %mask, %qk, %hidden
  %m = algebra.reduce_max %s dim 1
  %clamped = algebra.max %m, %least
  %d = algebra.sub %s, %clamped
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %log = algebra.log %l
  %lse = algebra.add %clamped, %log
  algebra.return %o, %lse
}

// CHECK-LABEL: @masked [
// CHECK:          attributes {dropped = ["%clamped: shifts by [M, 1]"]}
// CHECK:        %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %mask = algebra.causal diagonal L - M
// CHECK-NEXT:   %qk = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %s = algebra.select %mask, %qk, %hidden
// CHECK-NEXT:   %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   %log = algebra.log %l
// CHECK-NEXT:   algebra.return %o, %log

// -----

algebra.graph @log_softmax [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %log = algebra.log %l
  %o = algebra.sub %d, %log
  algebra.return %o
}

// CHECK-LABEL: @log_softmax [
// CHECK:          attributes {dropped = ["%m: shifts by [M, 1]"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %log = algebra.log %l
// CHECK-NEXT:   %o = algebra.sub %s, %log
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @maximum_is_a_result [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>, %v: !algebra.tensor<[L, D], f32>)
    -> (!algebra.tensor<[M, D], f32>, !algebra.tensor<[M, 1], f32>) {
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o, %m
}

// CHECK-LABEL: @maximum_is_a_result [
// CHECK:          attributes {dropped = ["%m in %d: shifts by [M, 1]"]}
// CHECK:        %m = algebra.reduce_max %s dim 1
// CHECK-NEXT:   %p = algebra.exp %s
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   algebra.return %o, %m

// -----

algebra.graph @not_by_a_maximum [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %three = algebra.constant 3.0 : !algebra.tensor<[], f32>
  %row = algebra.iota dim 0 : !algebra.tensor<[M, 1], i32>
  %column = algebra.iota dim 1 : !algebra.tensor<[1, L], i32>
  %i = algebra.cast %row to f32
  %j = algebra.cast %column to f32
  %distance = algebra.sub %j, %i
  %biased = algebra.add %s, %distance
  %d = algebra.sub %biased, %three
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @not_by_a_maximum [
// CHECK:          attributes {dropped = ["%i: shifts by [M, 1]", "%three: shifts by []"]}
// CHECK:        %column = algebra.iota dim 1
// CHECK-NEXT:   %j = algebra.cast %column to f32
// CHECK-NEXT:   %biased = algebra.add %s, %j
// CHECK-NEXT:   %p = algebra.exp %biased
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @sink [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>, %v: !algebra.tensor<[L, D], f32>,
     %z: !algebra.tensor<[1, 1], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %ms = algebra.reduce_max %s dim 1
  %m = algebra.max %ms, %z
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %dz = algebra.sub %z, %m
  %pz = algebra.exp %dz
  %sum = algebra.reduce_sum %p dim 1
  %l = algebra.add %sum, %pz
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}

// CHECK-LABEL: @sink [
// CHECK:          attributes {dropped = ["%m: shifts by [M, 1]"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %pz = algebra.exp %z
// CHECK-NEXT:   %sum = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l = algebra.add %sum, %pz
// CHECK-NEXT:   %n = algebra.div %p, %l
// CHECK-NEXT:   %o = algebra.matmul %n, %v
// CHECK-NEXT:   algebra.return %o
