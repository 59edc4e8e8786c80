// RUN: cleave-opt %s -p 'select-schedules{iterate=false}' --split-input-file --verify-diagnostics | filecheck %s

// A dim that is neither iterated nor divided is whole in each threadblock.
// CHECK: pass 'select-schedules': @long has no legal schedule: tiles take {{[0-9]+}} registers of each thread, which has {{[0-9]+}} for them
algebra.graph @long [M, L] where [M = 8, L = 4194304]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %o = algebra.reduce_sum %x dim 1
  algebra.return %o
}

// -----

// The result wants tiles of its rows, the sum wants all of them.
// CHECK: pass 'select-schedules': @two_paths has no legal schedule: two paths disagree on the tile of
algebra.graph @two_paths [M, K] where [M = 131072, K = 131072]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 0
  %o = algebra.div %e, %l
  algebra.return %o
}

// -----

// CHECK: pass 'select-schedules': 'algebra.graph' op: {{.*}} says of no kernel
algebra.graph @odd [M] where [M = 64]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>)
    attributes {kernel = 3 : i64} {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: pass 'select-schedules': symbol M of graph @unbound has no size; state it as a fact, or run specialize first
algebra.graph @unbound [M, K] where [K = 64]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %o = algebra.reduce_sum %x dim 1
  algebra.return %o
}
