// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// The parts of a split have references of their own: FlashDecoding.

algebra.graph @flash_decoding [H, M, L, D, s] where [s | L]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[1, H, M, D], f16>, !algebra.tensor<[1, H, M, 1], f32>) {
  %ks = algebra.split %k dim 2 count s
  %vs = algebra.split %v dim 1 count s
  %s = algebra.matmul %q, %ks
  %p = algebra.exp %s
  %ls = algebra.reduce_sum %p dim 3
  %as = algebra.matmul %p, %vs
  %l = algebra.reduce_sum %ls dim 0
  %a = algebra.reduce_sum %as dim 0
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}

// CHECK-LABEL: @flash_decoding [
// CHECK:        %ks = algebra.split %k dim 2 count s
// CHECK-NEXT:   %vs = algebra.split %v dim 1 count s
// CHECK-NEXT:   %s = algebra.matmul %q, %ks
// CHECK-NEXT:   %r = algebra.reference %s dim 3 : !algebra.tensor<[s, H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 3 : !algebra.tensor<[s, H, M, 1], f32>
// CHECK-NEXT:   %1 = algebra.matmul %p, %vs
// CHECK-NEXT:   %r_1 = algebra.reference %r dim 0 : !algebra.tensor<[1, H, M, 1], f32>
// CHECK-NEXT:   %2 = algebra.sub %r, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %2
// CHECK-NEXT:   %ls = algebra.mul %0, %rescale
// CHECK-NEXT:   %l = algebra.reduce_sum %ls dim 0 : !algebra.tensor<[1, H, M, 1], f32>
// CHECK-NEXT:   %as = algebra.mul %1, %rescale
// CHECK-NEXT:   %a = algebra.reduce_sum %as dim 0 : !algebra.tensor<[1, H, M, D], f32>
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   %3 = algebra.log %l
// CHECK-NEXT:   %lse = algebra.add %3, %r_1
// CHECK-NEXT:   algebra.return %o, %lse

// -----

algebra.graph @normalized_in_front [H, M, L, D, s] where [s | L]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %bias: !algebra.tensor<[M, L], f16>)
    -> (!algebra.tensor<[1, H, M, D], f16>) {
  %ks = algebra.split %k dim 2 count s
  %vs = algebra.split %v dim 1 count s
  %bs = algebra.split %bias dim 1 count s
  %bh = algebra.reshape %bs to [s, 1, M, L floordiv s]
  %qk = algebra.matmul %q, %ks
  %s = algebra.add %qk, %bh
  %p = algebra.exp %s
  %ls = algebra.reduce_sum %p dim 3
  %l = algebra.reduce_sum %ls dim 0
  %n = algebra.div %p, %l
  %os = algebra.matmul %n, %vs
  %o = algebra.reduce_sum %os dim 0
  algebra.return %o
}

// CHECK-LABEL: @normalized_in_front [
// CHECK:        %ks = algebra.split %k dim 2 count s
// CHECK-NEXT:   %vs = algebra.split %v dim 1 count s
// CHECK-NEXT:   %bs = algebra.split %bias dim 1 count s
// CHECK-NEXT:   %bh = algebra.reshape %bs to [s, 1, M, L floordiv s]
// CHECK-NEXT:   %qk = algebra.matmul %q, %ks
// CHECK-NEXT:   %s = algebra.add %qk, %bh
// CHECK-NEXT:   %r = algebra.reference %s dim 3 : !algebra.tensor<[s, H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 3 : !algebra.tensor<[s, H, M, 1], f32>
// CHECK-NEXT:   %r_1 = algebra.reference %r dim 0 : !algebra.tensor<[1, H, M, 1], f32>
// CHECK-NEXT:   %1 = algebra.sub %r, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %1
// CHECK-NEXT:   %ls = algebra.mul %0, %rescale
// CHECK-NEXT:   %l = algebra.reduce_sum %ls dim 0 : !algebra.tensor<[1, H, M, 1], f32>
// CHECK-NEXT:   %2 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %3 = algebra.sub %2, %r_1
// CHECK-NEXT:   %unseen = algebra.exp %3
// CHECK-NEXT:   %4 = algebra.add %l, %unseen
// CHECK-NEXT:   %n = algebra.div %p, %4
// CHECK-NEXT:   %5 = algebra.matmul %n, %vs
// CHECK-NEXT:   %os = algebra.mul %5, %rescale
// CHECK-NEXT:   %o = algebra.reduce_sum %os dim 0 : !algebra.tensor<[1, H, M, D], f32>
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @sink [M, L, D, s] where [s | L]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[D, L], f16>,
     %v: !algebra.tensor<[L, D], f16>, %sink: !algebra.tensor<[], f32>)
    -> (!algebra.tensor<[1, M, D], f16>) {
  %ks = algebra.split %k dim 1 count s
  %vs = algebra.split %v dim 0 count s
  %s = algebra.matmul %q, %ks
  %p = algebra.exp %s
  %z = algebra.exp %sink
  %ls = algebra.reduce_sum %p dim 2
  %as = algebra.matmul %p, %vs
  %sum = algebra.reduce_sum %ls dim 0
  %l = algebra.add %sum, %z
  %a = algebra.reduce_sum %as dim 0
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @sink [
// CHECK:        %ks = algebra.split %k dim 1 count s
// CHECK-NEXT:   %vs = algebra.split %v dim 0 count s
// CHECK-NEXT:   %s = algebra.matmul %q, %ks
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[s, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %0 = algebra.reduce_sum %p dim 2 : !algebra.tensor<[s, M, 1], f32>
// CHECK-NEXT:   %1 = algebra.matmul %p, %vs
// CHECK-NEXT:   %r_1 = algebra.reference %r dim 0 : !algebra.tensor<[1, M, 1], f32>
// CHECK-NEXT:   %2 = algebra.sub %r, %r_1
// CHECK-NEXT:   %rescale = algebra.exp %2
// CHECK-NEXT:   %ls = algebra.mul %0, %rescale
// CHECK-NEXT:   %3 = algebra.reduce_sum %ls dim 0 : !algebra.tensor<[1, M, 1], f32>
// CHECK-NEXT:   %r_2 = algebra.max %r_1, %sink : !algebra.tensor<[1, M, 1], f32>
// CHECK-NEXT:   %4 = algebra.sub %r_1, %r_2
// CHECK-NEXT:   %rescale_1 = algebra.exp %4
// CHECK-NEXT:   %sum = algebra.mul %3, %rescale_1
// CHECK-NEXT:   %5 = algebra.sub %sink, %r_2
// CHECK-NEXT:   %rescale_2 = algebra.exp %5
// CHECK-NEXT:   %l = algebra.add %sum, %rescale_2
// CHECK-NEXT:   %as = algebra.mul %1, %rescale
// CHECK-NEXT:   %a = algebra.reduce_sum %as dim 0 : !algebra.tensor<[1, M, D], f32>
// CHECK-NEXT:   %6 = algebra.div %a, %l
// CHECK-NEXT:   %o = algebra.mul %6, %rescale_1
// CHECK-NEXT:   algebra.return %o
