// RUN: cleave-opt %s -t tilelang --split-input-file --verify-diagnostics | filecheck %s

// CHECK: target tilelang: the module holds no itgraph.plan; run schedule-blocks, schedule-reductions and plan-memory first
algebra.graph @graph
    (%x: !algebra.tensor<[64], f32>) -> (!algebra.tensor<[64], f32>) {
  algebra.return %x
}

// -----

// CHECK: target tilelang: BM has no value and is the dim of no argument; bind it first
itgraph.plan @tile_size [M, BM]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
      ins (%t = %x[i_M * BM] tile [BM] in rmem<linear>)
      outs ([i_M * BM] of !algebra.tensor<[M], f32>) {
    itgraph.yield %t
  }
  itgraph.return %o
}

// -----

// CHECK: target tilelang: tile size M has no value; bind it first
itgraph.plan @whole_dim [M]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %o = itgraph.kernel ()
      ins (%t = %x in rmem<linear>)
      outs ([0] of !algebra.tensor<[M], f32>) {
    itgraph.yield %t
  }
  itgraph.return %o
}
