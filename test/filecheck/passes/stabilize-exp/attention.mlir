// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// Attention: the exponents are shifted by their maximum, wherever the division stands.

algebra.graph @division_behind [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @division_behind [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @softmax_in_front [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}

// CHECK-LABEL: @softmax_in_front [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %n = algebra.div %p, %l
// CHECK-NEXT:   %o = algebra.matmul %n, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @causal_lse [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s = algebra.matmul %q, %k transpose_rhs
  %seen = algebra.select %mask, %s, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}

// CHECK-LABEL: @causal_lse [
// CHECK:        %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %mask = algebra.causal diagonal L - M
// CHECK-NEXT:   %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %seen = algebra.select %mask, %s, %hidden
// CHECK-NEXT:   %r = algebra.reference %seen dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %seen, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %2
// CHECK-NEXT:   %3 = algebra.log %l
// CHECK-NEXT:   %lse = algebra.add %3, %r
// CHECK-NEXT:   algebra.return %o, %lse

// -----

algebra.graph @base_2 [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>, !algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>) {
  %scale = algebra.constant 0.18033688011112042 : !algebra.tensor<[], f32>
  %ln2 = algebra.constant 0.6931471805599453 : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.mul %qk, %scale
  %p = algebra.exp2 %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log2 %l
  %natural = algebra.mul %lse, %ln2
  algebra.return %o, %lse, %natural
}

// CHECK-LABEL: @base_2 [
// CHECK:        %scale = algebra.constant 0.18033688011112042 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %ln2 = algebra.constant 0.6931471805599453 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %qk = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %s = algebra.mul %qk, %scale
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp2 %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %o = algebra.div %a, %l
// CHECK-NEXT:   %0 = algebra.log2 %l
// CHECK-NEXT:   %1 = algebra.mul %0, %ln2
// CHECK-NEXT:   %lse = algebra.add %0, %r
// CHECK-NEXT:   %2 = algebra.mul %r, %ln2
// CHECK-NEXT:   %natural = algebra.add %1, %2
// CHECK-NEXT:   algebra.return %o, %lse, %natural

// -----

algebra.graph @gqa_lse [H, G, M, L, D]
    (%q: !algebra.tensor<[H * G, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H * G, M, D], f16>, !algebra.tensor<[H * G, M], f32>) {
  %qg = algebra.reshape %q to [H, G, M, D]
  %kg = algebra.reshape %k to [H, 1, L, D]
  %vg = algebra.reshape %v to [H, 1, L, D]
  %s = algebra.matmul %qg, %kg transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 3
  %a = algebra.matmul %p, %vg
  %og = algebra.div %a, %l
  %lse = algebra.log %l
  %o = algebra.reshape %og to [H * G, M, D]
  %flat = algebra.reshape %lse to [H * G, M]
  algebra.return %o, %flat
}

// CHECK-LABEL: @gqa_lse [
// CHECK:        %qg = algebra.reshape %q to [H, G, M, D]
// CHECK-NEXT:   %kg = algebra.reshape %k to [H, 1, L, D]
// CHECK-NEXT:   %vg = algebra.reshape %v to [H, 1, L, D]
// CHECK-NEXT:   %s = algebra.matmul %qg, %kg transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 3 : !algebra.tensor<[H, G, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 3 : !algebra.tensor<[H, G, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %vg
// CHECK-NEXT:   %og = algebra.div %a, %l
// CHECK-NEXT:   %0 = algebra.log %l
// CHECK-NEXT:   %o = algebra.reshape %og to [G * H, M, D]
// CHECK-NEXT:   %lse = algebra.add %0, %r
// CHECK-NEXT:   %flat = algebra.reshape %lse to [G * H, M]
// CHECK-NEXT:   algebra.return %o, %flat

// -----

algebra.graph @qk_norm [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
  %qq = algebra.square %q
  %q_sum = algebra.reduce_sum %qq dim 2
  %q_shifted = algebra.add %q_sum, %epsilon
  %q_norm = algebra.rsqrt %q_shifted
  %kk = algebra.square %k
  %k_sum = algebra.reduce_sum %kk dim 2
  %k_shifted = algebra.add %k_sum, %epsilon
  %k_norm = algebra.rsqrt %k_shifted
  %qn = algebra.mul %q, %q_norm
  %kn = algebra.mul %k, %k_norm
  %s = algebra.matmul %qn, %kn transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}

// CHECK-LABEL: @qk_norm [
// CHECK:        %epsilon = algebra.constant 1.0e-06 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %qq = algebra.square %q
// CHECK-NEXT:   %q_sum = algebra.reduce_sum %qq dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %q_shifted = algebra.add %q_sum, %epsilon
// CHECK-NEXT:   %q_norm = algebra.rsqrt %q_shifted
// CHECK-NEXT:   %kk = algebra.square %k
// CHECK-NEXT:   %k_sum = algebra.reduce_sum %kk dim 2 : !algebra.tensor<[H, L, 1], f32>
// CHECK-NEXT:   %k_shifted = algebra.add %k_sum, %epsilon
// CHECK-NEXT:   %k_norm = algebra.rsqrt %k_shifted
// CHECK-NEXT:   %qn = algebra.mul %q, %q_norm
// CHECK-NEXT:   %kn = algebra.mul %k, %k_norm
// CHECK-NEXT:   %s = algebra.matmul %qn, %kn transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %n = algebra.div %p, %l
// CHECK-NEXT:   %o = algebra.matmul %n, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @transposed [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %k, %q transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v transpose_lhs
  algebra.return %o
}

// CHECK-LABEL: @transposed [
// CHECK:        %s = algebra.matmul %k, %q transpose_rhs
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[H, 1, M], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[H, 1, M], f32>
// CHECK-NEXT:   %n = algebra.div %p, %l
// CHECK-NEXT:   %o = algebra.matmul %n, %v transpose_lhs
// CHECK-NEXT:   algebra.return %o
