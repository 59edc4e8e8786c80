// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64"},schedule-reductions{tile="L=32"}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: not cleave-opt %s -p 'schedule-reductions{tile="L=32 L=16"}' 2>&1 | filecheck %s --check-prefix=TWICE

// TWICE: error: pass 'schedule-reductions': two tiles for 'L'

// CHECK: pass 'schedule-reductions': tile for 'L', which is no symbol of @unknown_symbol (symbols: M, K, BM)
algebra.graph @unknown_symbol [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %o = algebra.reduce_sum %x dim 1
  algebra.return %o
}

// -----

// CHECK: pass 'schedule-reductions': tile for 'L', but @nothing_reduces reduces no dim of L
algebra.graph @nothing_reduces [M, K, L]
    (%x: !algebra.tensor<[M, K], f32>, %y: !algebra.tensor<[L], f32>)
    -> (!algebra.tensor<[M, L], f32>) {
  %s = algebra.reduce_sum %x dim 1
  %o = algebra.add %s, %y
  algebra.return %o
}

// -----

// A tile of the columns of %n needs one of the columns of %e and one of its rows.
// CHECK: pass 'schedule-reductions': two paths disagree on the tile of %e ('algebra.exp' op): [0, 0, i_L * BL] tile [BM, L, BL] and, for 'algebra.transpose' op, [0, i_L * BL, 0] tile [BM, BL, L]
algebra.graph @two_paths [M, L]
    (%x: !algebra.tensor<[M, L, L], f32>) -> (!algebra.tensor<[M, L, 1], f32>) {
  %e = algebra.exp %x
  %t = algebra.transpose %e permutation [0, 2, 1]
  %n = algebra.add %e, %t
  %o = algebra.reduce_sum %n dim 2
  algebra.return %o
}
