// RUN: cleave-opt %s -p stabilize-exp --split-input-file | filecheck %s

// Masks: a row that sees nothing has the divisor 1 and becomes 0.

algebra.graph @window [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.window diagonal L - M size 2 : !algebra.tensor<[M, L], i1>
  %s = algebra.matmul %q, %k transpose_rhs
  %seen = algebra.select %mask, %s, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}

// CHECK-LABEL: @window [
// CHECK:        %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %mask = algebra.window diagonal L - M size 2
// CHECK-NEXT:   %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %seen = algebra.select %mask, %s, %hidden
// CHECK-NEXT:   %r = algebra.reference %seen dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %seen, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %n = algebra.div %p, %2
// CHECK-NEXT:   %o = algebra.matmul %n, %v
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @bias [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %bias: !algebra.tensor<[H, M, L], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.add %qk, %bias
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @bias [
// CHECK:        %qk = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %s = algebra.add %qk, %bias
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @mask_tensor [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %mask: !algebra.tensor<[M, L], i1>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %s = algebra.matmul %q, %k transpose_rhs
  %seen = algebra.select %mask, %s, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @mask_tensor [
// CHECK:        %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
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
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @softcap [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %cap = algebra.constant 50.0 : !algebra.tensor<[], f32>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %part = algebra.div %qk, %cap
  %bent = algebra.tanh %part
  %capped = algebra.mul %bent, %cap
  %s = algebra.select %mask, %capped, %hidden
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @softcap [
// CHECK:        %cap = algebra.constant 50.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %mask = algebra.causal diagonal L - M
// CHECK-NEXT:   %qk = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %part = algebra.div %qk, %cap
// CHECK-NEXT:   %bent = algebra.tanh %part
// CHECK-NEXT:   %capped = algebra.mul %bent, %cap
// CHECK-NEXT:   %s = algebra.select %mask, %capped, %hidden
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @alibi [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>, %slope: !algebra.tensor<[H, 1, 1], f32>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %column = algebra.iota dim 1 : !algebra.tensor<[1, L], i32>
  %row = algebra.iota dim 0 start L - M : !algebra.tensor<[M, 1], i32>
  %j = algebra.cast %column to f32
  %i = algebra.cast %row to f32
  %distance = algebra.sub %j, %i
  %bias = algebra.mul %distance, %slope
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.add %qk, %bias
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @alibi [
// CHECK:        %column = algebra.iota dim 1
// CHECK-NEXT:   %row = algebra.iota dim 0 start L - M
// CHECK-NEXT:   %j = algebra.cast %column to f32
// CHECK-NEXT:   %i = algebra.cast %row to f32
// CHECK-NEXT:   %distance = algebra.sub %j, %i
// CHECK-NEXT:   %bias = algebra.mul %distance, %slope
// CHECK-NEXT:   %qk = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %s = algebra.add %qk, %bias
// CHECK-NEXT:   %r = algebra.reference %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %p = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %v
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %2
// CHECK-NEXT:   algebra.return %o

// -----

algebra.graph @selected_behind [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s = algebra.matmul %q, %k transpose_rhs
  %e = algebra.exp %s
  %p = algebra.select %mask, %e, %zero
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @selected_behind [
// CHECK:        %mask = algebra.causal diagonal L - M
// CHECK-NEXT:   %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %0 = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %seen = algebra.select %mask, %s, %0
// CHECK-NEXT:   %r = algebra.reference %seen dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %seen, %r
// CHECK-NEXT:   %e = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %e dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %a = algebra.matmul %e, %v
// CHECK-NEXT:   %1 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %2 = algebra.sub %1, %r
// CHECK-NEXT:   %unseen = algebra.exp %2
// CHECK-NEXT:   %3 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %3
// CHECK-NEXT:   algebra.return %o

// -----

// The mask may come later, be multiplied, and be applied to the quotient.

algebra.graph @multiplied_behind [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %mask: !algebra.tensor<[M, L], i1>)
    -> (!algebra.tensor<[M, D], f16>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %s = algebra.matmul %q, %k transpose_rhs
  %e = algebra.exp %s
  %ones = algebra.cast %mask to f32
  %p = algebra.mul %e, %ones
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %e, %l
  %seen = algebra.select %mask, %n, %zero
  %o = algebra.matmul %seen, %v
  algebra.return %o
}

// CHECK-LABEL: @multiplied_behind [
// CHECK:        %s = algebra.matmul %q, %k transpose_rhs
// CHECK-NEXT:   %0 = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:   %seen = algebra.select %mask, %s, %0
// CHECK-NEXT:   %r = algebra.reference %seen dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %seen, %r
// CHECK-NEXT:   %e = algebra.exp %shifted
// CHECK-NEXT:   %l = algebra.reduce_sum %e dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %1 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %2 = algebra.sub %1, %r
// CHECK-NEXT:   %unseen = algebra.exp %2
// CHECK-NEXT:   %3 = algebra.add %l, %unseen
// CHECK-NEXT:   %n = algebra.div %e, %3
// CHECK-NEXT:   %o = algebra.matmul %n, %v
// CHECK-NEXT:   algebra.return %o

// -----

// Only one of the two sums is masked: the reference looks at every key.

algebra.graph @masked_in_part [M, L]
    (%s: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %e = algebra.exp %s
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %p = algebra.select %mask, %e, %zero
  %a = algebra.reduce_sum %p dim 1
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: @masked_in_part [
// CHECK:        %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %r = algebra.reference %s dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %shifted = algebra.sub %s, %r
// CHECK-NEXT:   %e = algebra.exp %shifted
// CHECK-NEXT:   %mask = algebra.causal diagonal L - M
// CHECK-NEXT:   %p = algebra.select %mask, %e, %zero
// CHECK-NEXT:   %a = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %e dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %0 = algebra.constant -1.0e+20 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %1 = algebra.sub %0, %r
// CHECK-NEXT:   %unseen = algebra.exp %1
// CHECK-NEXT:   %2 = algebra.add %l, %unseen
// CHECK-NEXT:   %o = algebra.div %a, %2
// CHECK-NEXT:   algebra.return %o
