// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=128"}' --split-input-file | filecheck %s

// One dim is divided, the others stay whole. What the graph is known by stays.
algebra.graph @scores [M, L, D] where [M = 4096, D = 64]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, L], f32>) attributes {note = "kept"} {
  %s = algebra.matmul %q, %k transpose_rhs
  algebra.return %s
}

// CHECK-LABEL: itgraph.plan @scores [M, L, D, BM] where [M = 4096, D = 64, BM = 128]
// CHECK-NEXT:      (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, L], f32>)
// CHECK-NEXT:      attributes {note = "kept"} {
// CHECK-NEXT:    %s = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tq = %q[i_M * BM, 0] tile [BM, D], %tk = %k)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, L], f32>) {
// CHECK-NEXT:      %s_1 = algebra.matmul %tq, %tk transpose_rhs : !algebra.tensor<[BM, L], f32>
// CHECK-NEXT:      itgraph.yield %s_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %s
// CHECK-NEXT:  }

// -----

// Tiles of computed values follow from the operators; generators move with them. An
// input is seen in as many tiles as are needed: here both dims of the result are M.
algebra.graph @gram [M, D]
    (%x: !algebra.tensor<[M, D], f16>, %row: !algebra.tensor<[D], f16>)
    -> (!algebra.tensor<[M, M], f32>, !algebra.tensor<[M, M], f32>) {
  %scaled = algebra.mul %x, %row
  %n = algebra.cast %scaled to f16
  %s = algebra.matmul %n, %x transpose_rhs
  %seen = algebra.causal diagonal 0 : !algebra.tensor<[M, M], i1>
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %masked = algebra.select %seen, %s, %least
  algebra.return %s, %masked
}

// CHECK-LABEL: itgraph.plan @gram [M, D, BM] where [BM = 128]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, D], f16>, %row: !algebra.tensor<[D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, M], f32>, !algebra.tensor<[M, M], f32>) {
// CHECK-NEXT:    %s, %masked = itgraph.kernel (i_M = 0 to M ceildiv BM, i_M_2 = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M_2 * BM, 0] tile [BM, D], %tx_1 = %x[i_M * BM, 0] tile [BM, D], %trow = %row)
// CHECK-NEXT:        outs ([i_M * BM, i_M_2 * BM] of !algebra.tensor<[M, M], f32>, [i_M * BM, i_M_2 * BM] of !algebra.tensor<[M, M], f32>) {
// CHECK-NEXT:      %scaled = algebra.mul %tx_1, %trow : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      %n = algebra.cast %scaled to f16 : !algebra.tensor<[BM, D], f16>
// CHECK-NEXT:      %s_1 = algebra.matmul %n, %tx transpose_rhs : !algebra.tensor<[BM, BM], f32>
// CHECK-NEXT:      %seen = algebra.causal diagonal i_M * BM - i_M_2 * BM : !algebra.tensor<[BM, BM], i1>
// CHECK-NEXT:      %least = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:      %masked_1 = algebra.select %seen, %s_1, %least : !algebra.tensor<[BM, BM], f32>
// CHECK-NEXT:      itgraph.yield %s_1, %masked_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %s, %masked
// CHECK-NEXT:  }

// -----

// Views of inputs and results are outside of the kernel, where they cost nothing.
algebra.graph @views [H, G, M, D]
    (%q: !algebra.tensor<[H * G, M, D], f16>) -> (!algebra.tensor<[M, H * G * D], f32>, !algebra.tensor<[H, G, M, D], f32>) {
  %a = algebra.reshape %q to [H, G, M, D]
  %e = algebra.exp %a
  %o = algebra.reshape %e to [M, H * G * D]
  %unused = algebra.reshape %e to [H * G, M, D]
  algebra.return %o, %e
}

// CHECK-LABEL: itgraph.plan @views [H, G, M, D, BM] where [BM = 128]
// CHECK-NEXT:      (%q: !algebra.tensor<[G * H, M, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, D * G * H], f32>, !algebra.tensor<[H, G, M, D], f32>) {
// CHECK-NEXT:    %a = algebra.reshape %q to [H, G, M, D] : !algebra.tensor<[H, G, M, D], f16>
// CHECK-NEXT:    %e = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%ta = %a[0, 0, i_M * BM, 0] tile [H, G, BM, D])
// CHECK-NEXT:        outs ([0, 0, i_M * BM, 0] of !algebra.tensor<[H, G, M, D], f32>) {
// CHECK-NEXT:      %e_1 = algebra.exp %ta : !algebra.tensor<[H, G, BM, D], f32>
// CHECK-NEXT:      itgraph.yield %e_1
// CHECK-NEXT:    }
// CHECK-NEXT:    %o = algebra.reshape %e to [M, D * G * H] : !algebra.tensor<[M, D * G * H], f32>
// CHECK-NEXT:    itgraph.return %o, %e
// CHECK-NEXT:  }

// -----

// A name that is taken gets a number.
algebra.graph @taken [M, BM, i_M]
    (%x: !algebra.tensor<[M, M, BM, i_M], f32>) -> (!algebra.tensor<[M, M, BM, i_M], f32>) {
  %e = algebra.exp %x
  algebra.return %e
}

// CHECK-LABEL: itgraph.plan @taken [M, BM, i_M, BM_2] where [BM_2 = 128]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, M, BM, i_M], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, M, BM, i_M], f32>) {
// CHECK-NEXT:    %e = itgraph.kernel (i_M_2 = 0 to M ceildiv BM_2, i_M_3 = 0 to M ceildiv BM_2)
// CHECK-NEXT:        ins (%tx = %x[i_M_2 * BM_2, i_M_3 * BM_2, 0, 0] tile [BM_2, BM_2, BM, i_M])
// CHECK-NEXT:        outs ([i_M_2 * BM_2, i_M_3 * BM_2, 0, 0] of !algebra.tensor<[M, M, BM, i_M], f32>) {
// CHECK-NEXT:      %e_1 = algebra.exp %tx : !algebra.tensor<[BM_2, BM_2, BM, i_M], f32>
// CHECK-NEXT:      itgraph.yield %e_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %e
// CHECK-NEXT:  }

// -----

// A dim that is an expression goes by the symbol in it that is no output dim itself.
algebra.graph @folded [H, G, M]
    (%x: !algebra.tensor<[H, G * M], f32>) -> (!algebra.tensor<[H, G * M], f32>) {
  %o = algebra.neg %x
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @folded [H, G, M, BM] where [BM = 128]
// CHECK:         %o = itgraph.kernel (i_M = 0 to G * M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[0, i_M * BM] tile [H, BM])
// CHECK-NEXT:        outs ([0, i_M * BM] of !algebra.tensor<[H, G * M], f32>) {

// -----

// Of the parts of a split each tile has one, without being told.
algebra.graph @parts [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[s, M, 1], f32>) {
  %parts = algebra.split %x dim 1 count s
  %sum = algebra.reduce_sum %parts dim 2
  algebra.return %sum
}

// CHECK-LABEL: itgraph.plan @parts [M, K, s, BM] where [s | K, BM = 128]
// CHECK:         %sum = itgraph.kernel (i_s = 0 to s, i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, i_s * (K floordiv s)] tile [BM, K floordiv s])
// CHECK-NEXT:        outs ([i_s, i_M * BM, 0] of !algebra.tensor<[s, M, 1], f32>) {
