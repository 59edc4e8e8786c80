// RUN: not cleave-opt %s -p 'schedule-blocks{tile="M=16"},schedule-reductions{tile="K=16"},schedule-reductions{tile="N=16"}' 2>&1 | filecheck %s
// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=16"},schedule-reductions{tile="N=16"},schedule-reductions{tile="K=16"}' | filecheck %s --check-prefix=OUTER

// The outer loop has to be there first, or both are made at once.
// CHECK: error: pass 'schedule-reductions': %h is needed in tiles of [0, i_N * BN] tile [BM, BN], but a loop has computed it already; give the tiles of both reductions at once
// OUTER: itgraph.loop (i_N = 0 to N ceildiv BN)
// OUTER:   itgraph.loop (i_K = 0 to K ceildiv BK)
algebra.graph @chain [M, K, N, P]
    (%x: !algebra.tensor<[M, K], f16>, %a: !algebra.tensor<[K, N], f16>,
     %b: !algebra.tensor<[N, P], f16>)
    -> (!algebra.tensor<[M, P], f32>) {
  %h = algebra.matmul %x, %a
  %n = algebra.cast %h to f16
  %o = algebra.matmul %n, %b
  algebra.return %o
}
