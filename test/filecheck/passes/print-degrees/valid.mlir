// RUN: cleave-opt %s -p print-degrees --split-input-file | filecheck %s

// Degrees of every value, which exponents are shifted, and what results gain.

algebra.graph @attention [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log2 %l
  algebra.return %o, %lse
}

// CHECK-LABEL: @attention [
// CHECK:          attributes {exponentials = ["%p: reference over dim 2 (L)"], gains = ["0", "%p / ln 2"]}
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %p = algebra.exp %s {scaled_by = "%p"}
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 {scaled_by = "%p"} : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v {scaled_by = "%p"}
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   %lse = algebra.log2 %l {shifted_by = "%p / ln 2"}
// CHECK-NEXT:   algebra.return %o, %lse

// -----

algebra.graph @sink [M, L]
    (%s: !algebra.tensor<[M, L], f32>, %sink: !algebra.tensor<[1, 1], f32>)
    -> (!algebra.tensor<[M, L], f32>) {
  %p = algebra.exp %s
  %z = algebra.exp %sink
  %sum = algebra.reduce_sum %p dim 1
  %l = algebra.add %sum, %z
  %o = algebra.div %p, %l
  algebra.return %o
}

// CHECK-LABEL: @sink [
// CHECK:          attributes {exponentials = ["%p: reference over dim 1 (L)", "%z: shifted by itself"], gains = ["0"]}
// CHECK:        %p = algebra.exp %s {scaled_by = "%p"}
// CHECK-NEXT:   %z = algebra.exp %sink {scaled_by = "%p"}
// CHECK-NEXT:   %sum = algebra.reduce_sum %p dim 1 {scaled_by = "%p"} : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l = algebra.add %sum, %z {scaled_by = "%p"}
// CHECK-NEXT:   %o = algebra.div %p, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @powers [M, L, N]
    (%s: !algebra.tensor<[M, L, N], f32>) -> (!algebra.tensor<[M, 1, 1], f32>) {
  %p = algebra.exp2 %s
  %pp = algebra.square %p
  %rows = algebra.reduce_sum %pp dim 2
  %l = algebra.reduce_sum %rows dim 1
  %root = algebra.sqrt %l
  %log = algebra.log %root
  %negative = algebra.neg %log
  algebra.return %negative
}

// CHECK-LABEL: @powers [
// CHECK:          attributes {exponentials = ["%p: reference over dim 2 (N)"], gains = ["-%p"]}
// CHECK:        %p = algebra.exp2 %s {scaled_by = "%p"}
// CHECK-NEXT:   %pp = algebra.square %p {scaled_by = "2 %p"}
// CHECK-NEXT:   %rows = algebra.reduce_sum %pp dim 2 {scaled_by = "2 %p"} : !algebra.tensor<[M, L, 1], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %rows dim 1 {scaled_by = "2 %p"} : !algebra.tensor<[M, 1, 1], f32>
// CHECK-NEXT:   %root = algebra.sqrt %l {scaled_by = "%p"}
// CHECK-NEXT:   %log = algebra.log %root {shifted_by = "%p"}
// CHECK-NEXT:   %negative = algebra.neg %log {shifted_by = "-%p"}
// CHECK-NEXT:   algebra.return %negative

// -----

algebra.graph @two_families [M, L, N]
    (%s: !algebra.tensor<[M, L], f32>, %z: !algebra.tensor<[M, N], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %q = algebra.exp %z
  %n = algebra.reduce_sum %q dim 1
  %ratio = algebra.div %l, %n
  %log = algebra.log %ratio
  algebra.return %log
}

// CHECK-LABEL: @two_families [
// CHECK:          attributes {exponentials = ["%p: reference over dim 1 (L)", "%q: reference over dim 1 (N)"], gains = ["%p - %q"]}
// CHECK:        %p = algebra.exp %s {scaled_by = "%p"}
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 {scaled_by = "%p"} : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %q = algebra.exp %z {scaled_by = "%q"}
// CHECK-NEXT:   %n = algebra.reduce_sum %q dim 1 {scaled_by = "%q"} : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %ratio = algebra.div %l, %n {scaled_by = "%p - %q"}
// CHECK-NEXT:   %log = algebra.log %ratio {shifted_by = "%p - %q"}
// CHECK-NEXT:   algebra.return %log

// -----

algebra.graph @kept [M, L, D]
    (%s: !algebra.tensor<[M, L], f32>, %v: !algebra.tensor<[L, D], f32>)
    -> (!algebra.tensor<[M, D], f32>) {
  %p = algebra.exp %s
  %o = algebra.matmul %p, %v
  algebra.return %o
}

// CHECK-LABEL: @kept [
// CHECK:          attributes {exponentials = ["%p: 'algebra.return' op: result 0 would be scaled by %p"], gains = ["0"]}
// CHECK:        %p = algebra.exp %s
// CHECK-NEXT:   %o = algebra.matmul %p, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @no_exponential [M, N]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, N], f32>) {
  %y = algebra.silu %x
  algebra.return %y
}

// CHECK-LABEL: @no_exponential [
// CHECK:        %y = algebra.silu %x
// CHECK-NEXT:   algebra.return %y
