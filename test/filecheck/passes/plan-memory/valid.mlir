// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=128"},schedule-reductions{tile="L=64"},plan-memory' --split-input-file | filecheck %s

// What tensor cores read lies swizzled in SMEM, but for a left operand that is computed
// as a fragment. The layout goes on through elementwise operators and to row vectors.
// The result leaves through SMEM.
algebra.graph @attention [M, L, D] where [M = 4096, L = 4096, D = 64]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.cast %p to f16
  %a = algebra.matmul %n, %v
  %d = algebra.div %a, %l
  %o = algebra.cast %d to f16
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @attention [M, L, D, BM, BL] where [M = 4096, L = 4096, D = 64, BM = 128, BL = 64]
// CHECK-NEXT:      (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>, %v: !algebra.tensor<[L, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, D], f16>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tq = %q[i_M * BM, 0] tile [BM, D] in smem<swizzled>, %tk = %k in gmem, %tv = %v in gmem)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f16>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 2 : i64, warps = "rows", specialization = "single-loop"} {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      %l, %a = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tk_1 = %tk[i_L * BL, 0] tile [BL, D] in smem<swizzled>, %tv_1 = %tv[i_L * BL, 0] tile [BL, D] in smem<swizzled>)
// CHECK-NEXT:          state (%l_acc = sum %zero in rmem<fragment>, %a_acc = sum %zero_1 in rmem<fragment>) {
// CHECK-NEXT:        %s = algebra.matmul %tq, %tk_1 transpose_rhs : !algebra.tensor<[BM, BL], f32> in rmem<fragment>
// CHECK-NEXT:        %p = algebra.exp %s : !algebra.tensor<[BM, BL], f32> in rmem<fragment>
// CHECK-NEXT:        %l_1 = algebra.reduce_sum %p dim 1 : !algebra.tensor<[BM, 1], f32> in rmem<fragment>
// CHECK-NEXT:        %n = algebra.cast %p to f16 : !algebra.tensor<[BM, BL], f16> in rmem<fragment>
// CHECK-NEXT:        %a_1 = algebra.matmul %n, %tv_1 : !algebra.tensor<[BM, D], f32> in rmem<fragment>
// CHECK-NEXT:        itgraph.next %l_1, %a_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %d = algebra.div %a, %l : !algebra.tensor<[BM, D], f32> in rmem<fragment>
// CHECK-NEXT:      %o_1 = algebra.cast %d to f16 : !algebra.tensor<[BM, D], f16> in rmem<fragment>
// CHECK-NEXT:      %o_2 = itgraph.copy %o_1 to smem<swizzled> : !algebra.tensor<[BM, D], f16>
// CHECK-NEXT:      itgraph.yield %o_2
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// A computed right operand goes through SMEM. Sums and maxima of narrow elements are
// taken in f32, from registers.
algebra.graph @right_operand [M, L, N] where [L = 128, N = 64]
    (%x: !algebra.tensor<[M, L], bf16>, %w: !algebra.tensor<[L, N], bf16>)
    -> (!algebra.tensor<[M, N], f32>, !algebra.tensor<[M, 1], f32>) {
  %relu = algebra.relu %w
  %r = algebra.cast %relu to bf16
  %o = algebra.matmul %x, %r
  %m = algebra.reduce_max %x dim 1
  algebra.return %o, %m
}

// CHECK-LABEL: itgraph.plan @right_operand [M, L, N, BM, BL] where [L = 128, N = 64, BM = 128, BL = 64]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], bf16>, %w: !algebra.tensor<[L, N], bf16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>, !algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:    %o, %m = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L] in gmem, %tw = %w in gmem)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f32>, [i_M * BM, 0] of !algebra.tensor<[M, 1], f32>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 2 : i64, warps = "rows", specialization = "single-loop"} {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      %least = algebra.constant -inf : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %o_1, %m_1 = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tw_1 = %tw[i_L * BL, 0] tile [BL, N] in smem<linear>, %tx_1 = %tx[0, i_L * BL] tile [BM, BL] in smem<swizzled>)
// CHECK-NEXT:          state (%o_acc = sum %zero in rmem<fragment>, %m_acc = max %least in rmem<linear>) {
// CHECK-NEXT:        %relu = algebra.relu %tw_1 : !algebra.tensor<[BL, N], f32> in rmem<linear>
// CHECK-NEXT:        %r = algebra.cast %relu to bf16 : !algebra.tensor<[BL, N], bf16> in rmem<linear>
// CHECK-NEXT:        %r_1 = itgraph.copy %r to smem<swizzled> : !algebra.tensor<[BL, N], bf16>
// CHECK-NEXT:        %o_2 = algebra.matmul %tx_1, %r_1 : !algebra.tensor<[BM, N], f32> in rmem<fragment>
// CHECK-NEXT:        %tx_2 = algebra.cast %tx_1 to f32 : !algebra.tensor<[BM, BL], f32> in rmem<linear>
// CHECK-NEXT:        %m_2 = algebra.reduce_max %tx_2 dim 1 : !algebra.tensor<[BM, 1], f32> in rmem<linear>
// CHECK-NEXT:        itgraph.next %o_2, %m_2
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %o_1, %m_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o, %m
// CHECK-NEXT:  }

// -----

// A row vector held as one layout has it is read from SMEM by a tile of another one.
algebra.graph @row_vector [M, L, N] where [L = 128, N = 64]
    (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %squares = algebra.square %x
  %sum = algebra.reduce_sum %squares dim 1
  %y = algebra.matmul %x, %w
  %o = algebra.div %y, %sum
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @row_vector [M, L, N, BM, BL] where [L = 128, N = 64, BM = 128, BL = 64]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L] in gmem, %tw = %w in gmem)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f32>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 2 : i64, warps = "rows", specialization = "single-loop"} {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      %sum, %y = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL] in smem<swizzled>, %tw_1 = %tw[i_L * BL, 0] tile [BL, N] in smem<swizzled>)
// CHECK-NEXT:          state (%sum_acc = sum %zero in rmem<linear>, %y_acc = sum %zero_1 in rmem<fragment>) {
// CHECK-NEXT:        %squares = algebra.square %tx_1 : !algebra.tensor<[BM, BL], f32> in rmem<linear>
// CHECK-NEXT:        %sum_1 = algebra.reduce_sum %squares dim 1 : !algebra.tensor<[BM, 1], f32> in rmem<linear>
// CHECK-NEXT:        %y_1 = algebra.matmul %tx_1, %tw_1 : !algebra.tensor<[BM, N], f32> in rmem<fragment>
// CHECK-NEXT:        itgraph.next %sum_1, %y_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %sum_2 = itgraph.copy %sum to smem<linear> : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %o_1 = algebra.div %y, %sum_2 : !algebra.tensor<[BM, N], f32> in rmem<fragment>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// Without tensor cores: what loops load is in SMEM, the rest in registers. What is used
// whole and in slices is loaded once, for 64 divides L.
algebra.graph @softmax [M, L] where [L = 128]
    (%x: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, L], f16>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 1
  %n = algebra.div %e, %l
  %o = algebra.cast %n to f16
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @softmax [M, L, BM, BL] where [L = 128, BM = 128, BL = 64]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, L], f16>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L] in smem<linear>)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, L], f16>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 2 : i64, warps = "rows", specialization = "single-loop"} {
// CHECK-NEXT:      %e = algebra.exp %tx : !algebra.tensor<[BM, L], f32> in rmem<linear>
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %l = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL] in smem<linear>)
// CHECK-NEXT:          state (%l_acc = sum %zero in rmem<linear>) {
// CHECK-NEXT:        %e_1 = algebra.exp %tx_1 : !algebra.tensor<[BM, BL], f32> in rmem<linear>
// CHECK-NEXT:        %l_1 = algebra.reduce_sum %e_1 dim 1 : !algebra.tensor<[BM, 1], f32> in rmem<linear>
// CHECK-NEXT:        itgraph.next %l_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %n = algebra.div %e, %l : !algebra.tensor<[BM, L], f32> in rmem<linear>
// CHECK-NEXT:      %o_1 = algebra.cast %n to f16 : !algebra.tensor<[BM, L], f16> in rmem<linear>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// Where it does not, the last slice ends beyond the tile: slices come from GMEM.
algebra.graph @softmax_tail [M, L] where [L = 100]
    (%x: !algebra.tensor<[M, L], f16>, %y: !algebra.tensor<[L], f16>)
    -> (!algebra.tensor<[M, L], f32>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 1
  %n = algebra.div %e, %l
  %o = algebra.mul %n, %y
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @softmax_tail [M, L, BM, BL] where [L = 100, BM = 128, BL = 64]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>, %y: !algebra.tensor<[L], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, L], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L] in rmem<linear>, %ty = %y in smem<linear>, %tx_1 = %x[i_M * BM, 0] tile [BM, L] in gmem)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, L], f32>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 2 : i64, warps = "rows", specialization = "role-based"} {
// CHECK-NEXT:      %e = algebra.exp %tx : !algebra.tensor<[BM, L], f32> in rmem<linear>
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %l = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_2 = %tx_1[0, i_L * BL] tile [BM, BL] in smem<linear>)
// CHECK-NEXT:          state (%l_acc = sum %zero in rmem<linear>) {
// CHECK-NEXT:        %e_1 = algebra.exp %tx_2 : !algebra.tensor<[BM, BL], f32> in rmem<linear>
// CHECK-NEXT:        %e_2 = itgraph.tail %e_1 dim 1 limit L - i_L * BL fill 0.0 : !algebra.tensor<[BM, BL], f32> in rmem<linear>
// CHECK-NEXT:        %l_1 = algebra.reduce_sum %e_2 dim 1 : !algebra.tensor<[BM, 1], f32> in rmem<linear>
// CHECK-NEXT:        itgraph.next %l_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %n = algebra.div %e, %l : !algebra.tensor<[BM, L], f32> in rmem<linear>
// CHECK-NEXT:      %o_1 = algebra.mul %n, %ty : !algebra.tensor<[BM, L], f32> in rmem<linear>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }
