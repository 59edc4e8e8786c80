// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64"}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: not cleave-opt %s -p 'schedule-blocks{tile="M=64 M=32"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not cleave-opt %s -p 'schedule-blocks{tile="M=0"}' 2>&1 | filecheck %s --check-prefix=ZERO
// RUN: not cleave-opt %s -p 'schedule-blocks{tile="M:64"}' 2>&1 | filecheck %s --check-prefix=FORM

// TWICE: error: pass 'schedule-blocks': two tiles for 'M'
// ZERO: error: pass 'schedule-blocks': tile M=0 is not at least 1
// FORM: error: pass 'schedule-blocks': tile 'M:64' is not of the form SYMBOL or SYMBOL=SIZE

// One rule a chunk, and one CHECK a chunk: a chunk that is accepted fails its CHECK.

// CHECK: pass 'schedule-blocks': tile for 'M', which is no symbol of @unknown_symbol (symbols: N, K)
algebra.graph @unknown_symbol [N, K]
    (%x: !algebra.tensor<[N, K], f32>) -> (!algebra.tensor<[N, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: pass 'schedule-blocks': tile for 'M', which is no symbol of @no_symbols (symbols: none)
algebra.graph @no_symbols
    (%x: !algebra.tensor<[4], f32>) -> (!algebra.tensor<[4], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: pass 'schedule-blocks': tile for 'M', but no output dim of @no_output_dim is M (outputs: !algebra.tensor<[1, K], f32>)
algebra.graph @no_output_dim [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[1, K], f32>) {
  %o = algebra.reduce_sum %x dim 0
  algebra.return %o
}

// -----

// The result wants a tile of the rows of %e, the sum wants all of them.
// CHECK: pass 'schedule-blocks': two paths disagree on the tile of %e ('algebra.exp' op): [i_M * BM, 0] tile [BM, K] and, for 'algebra.reduce_sum' op, [0, 0] tile [M, K]
algebra.graph @two_paths [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 0
  %o = algebra.div %e, %l
  algebra.return %o
}

// -----

// CHECK: pass 'schedule-blocks': two paths disagree on the tile of a computed value ('algebra.exp' op): [i_M * BM, 0] tile [BM, M] and, for 'algebra.transpose' op, [0, i_M * BM] tile [M, BM]
algebra.graph @transposed [M]
    (%x: !algebra.tensor<[M, M], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %0 = algebra.exp %x
  %1 = algebra.transpose %0 permutation [1, 0]
  %2 = algebra.add %0, %1
  %3 = algebra.reduce_sum %2 dim 1
  algebra.return %3
}

// -----

// CHECK: pass 'schedule-blocks': 'algebra.reshape' op: from [M, 2 * K] to [M, 2, K] regroups dims of a computed value, which no tile map expresses; reshape inputs or outputs instead
algebra.graph @regrouped [M, K]
    (%x: !algebra.tensor<[M, 2 * K], f32>) -> (!algebra.tensor<[M, 2, 1], f32>) {
  %e = algebra.exp %x
  %r = algebra.reshape %e to [M, 2, K]
  %o = algebra.reduce_sum %r dim 2
  algebra.return %o
}

// -----

// Not in one part of the split: what is reduced covers all of them.
// CHECK: pass 'schedule-blocks': 'algebra.split' op: s parts at a stride of K floordiv s are no tile; only a tile of 1 over the parts of a split is
algebra.graph @parts_together [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[1, M, 1], f32>) {
  %p = algebra.split %x dim 1 count s
  %q = algebra.reduce_max %p dim 2
  %o = algebra.reduce_max %q dim 0
  algebra.return %o
}

// -----

// CHECK: pass 'schedule-blocks': 'itgraph.kernel' op: output 1 is written once for each i_M, because its offsets [0] do not use it
algebra.graph @written_again [M, K]
    (%x: !algebra.tensor<[M, K], f32>, %y: !algebra.tensor<[K], f32>)
    -> (!algebra.tensor<[M, K], f32>, !algebra.tensor<[K], f32>) {
  %a = algebra.exp %x
  %b = algebra.exp %y
  algebra.return %a, %b
}

// -----

// CHECK: pass 'schedule-blocks': @not_rounded returns !algebra.tensor<[M], f32> as result 0, which is !algebra.tensor<[M], f16>; insert-casts rounds it
algebra.graph @not_rounded [M]
    (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>) {
  %o = algebra.exp %x
  algebra.return %o
}
