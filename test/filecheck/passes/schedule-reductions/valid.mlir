// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64"},schedule-reductions{tile="L=32"}' --split-input-file | filecheck %s

// Two reductions of one dim that share a producer become one loop. 32 divides L.
algebra.graph @one_loop [M, L, D] where [L = 4096]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.cast %p to f16
  %a = algebra.matmul %n, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @one_loop [M, L, D, BM, BL] where [L = 4096, BM = 64, BL = 32]
// CHECK-NEXT:      (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>, %v: !algebra.tensor<[L, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, D], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tq = %q[i_M * BM, 0] tile [BM, D], %tk = %k, %tv = %v)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      %l, %a = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tk_1 = %tk[i_L * BL, 0] tile [BL, D], %tv_1 = %tv[i_L * BL, 0] tile [BL, D])
// CHECK-NEXT:          state (%l_acc = sum %zero, %a_acc = sum %zero_1) {
// CHECK-NEXT:        %s = algebra.matmul %tq, %tk_1 transpose_rhs : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %p = algebra.exp %s : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %l_1 = algebra.reduce_sum %p dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %n = algebra.cast %p to f16 : !algebra.tensor<[BM, BL], f16>
// CHECK-NEXT:        %a_1 = algebra.matmul %n, %tv_1 : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:        itgraph.next %l_1, %a_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %o_1 = algebra.div %a, %l : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// Inputs count as shared producers: each tile of %x is loaded once.
algebra.graph @shared_input [M, L, N] where [L = 128]
    (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>,
     %u: !algebra.tensor<[L, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %a = algebra.matmul %x, %w
  %b = algebra.matmul %x, %u
  %o = algebra.mul %a, %b
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @shared_input [M, L, N, BM, BL] where [L = 128, BM = 64, BL = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>, %u: !algebra.tensor<[L, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L], %tw = %w, %tu = %u)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      %a, %b = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL], %tw_1 = %tw[i_L * BL, 0] tile [BL, N], %tu_1 = %tu[i_L * BL, 0] tile [BL, N])
// CHECK-NEXT:          state (%a_acc = sum %zero, %b_acc = sum %zero_1) {
// CHECK-NEXT:        %a_1 = algebra.matmul %tx_1, %tw_1 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:        %b_1 = algebra.matmul %tx_1, %tu_1 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:        itgraph.next %a_1, %b_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %o_1 = algebra.mul %a, %b : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// Nothing is shared: two loops.
algebra.graph @siblings [M, L] where [L = 128]
    (%x: !algebra.tensor<[M, L], f32>, %y: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %a = algebra.reduce_sum %x dim 1
  %b = algebra.reduce_sum %y dim 1
  %o = algebra.mul %a, %b
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @siblings [M, L, BM, BL] where [L = 128, BM = 64, BL = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f32>, %y: !algebra.tensor<[M, L], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L], %ty = %y[i_M * BM, 0] tile [BM, L])
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %a = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL])
// CHECK-NEXT:          state (%a_acc = sum %zero) {
// CHECK-NEXT:        %a_1 = algebra.reduce_sum %tx_1 dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        itgraph.next %a_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %b = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%ty_1 = %ty[0, i_L * BL] tile [BM, BL])
// CHECK-NEXT:          state (%b_acc = sum %zero_1) {
// CHECK-NEXT:        %b_1 = algebra.reduce_sum %ty_1 dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        itgraph.next %b_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %o_1 = algebra.mul %a, %b : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// A sum that comes before the last one has a loop of its own, with producers cloned.
// A dim without a tile is reduced as a whole.
algebra.graph @softmax [M, L, D] where [L = 128]
    (%x: !algebra.tensor<[M, L, D], f32>) -> (!algebra.tensor<[M, 1, 1], f32>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 1
  %n = algebra.div %e, %l
  %t = algebra.reduce_max %n dim 2
  %o = algebra.reduce_max %t dim 1
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @softmax [M, L, D, BM, BL] where [L = 128, BM = 64, BL = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L, D], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, 1, 1], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0, 0] tile [BM, L, D])
// CHECK-NEXT:        outs ([i_M * BM, 0, 0] of !algebra.tensor<[M, 1, 1], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1, D], f32>
// CHECK-NEXT:      %l = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL, 0] tile [BM, BL, D])
// CHECK-NEXT:          state (%l_acc = sum %zero) {
// CHECK-NEXT:        %e = algebra.exp %tx_1 : !algebra.tensor<[BM, BL, D], f32>
// CHECK-NEXT:        %l_1 = algebra.reduce_sum %e dim 1 : !algebra.tensor<[BM, 1, D], f32>
// CHECK-NEXT:        itgraph.next %l_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %least = algebra.constant -inf : !algebra.tensor<[BM, 1, 1], f32>
// CHECK-NEXT:      %o_1 = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_2 = %tx[0, i_L * BL, 0] tile [BM, BL, D])
// CHECK-NEXT:          state (%o_acc = max %least) {
// CHECK-NEXT:        %e_1 = algebra.exp %tx_2 : !algebra.tensor<[BM, BL, D], f32>
// CHECK-NEXT:        %n = algebra.div %e_1, %l : !algebra.tensor<[BM, BL, D], f32>
// CHECK-NEXT:        %t = algebra.reduce_max %n dim 2 : !algebra.tensor<[BM, BL, 1], f32>
// CHECK-NEXT:        %o_2 = algebra.reduce_max %t dim 1 : !algebra.tensor<[BM, 1, 1], f32>
// CHECK-NEXT:        itgraph.next %o_2
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// Tails. Zeros that were loaded do for a sum, but not when something has been computed
// from them; a maximum always masks. What is not known to divide is masked, too.
algebra.graph @tails [M, L, N]
    (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %wide = algebra.cast %x to f32
  %sum = algebra.reduce_sum %wide dim 1
  %max = algebra.reduce_max %x dim 1
  %relu = algebra.relu %x
  %h = algebra.cast %relu to f16
  %product = algebra.matmul %h, %w
  %a = algebra.mul %sum, %max
  %o = algebra.mul %product, %a
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @tails [M, L, N, BM, BL] where [BM = 64, BL = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L], %tw = %w)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %least = algebra.constant -inf : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      %sum, %max, %product = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL], %tw_1 = %tw[i_L * BL, 0] tile [BL, N])
// CHECK-NEXT:          state (%sum_acc = sum %zero, %max_acc = max %least, %product_acc = sum %zero_1) {
// CHECK-NEXT:        %wide = algebra.cast %tx_1 to f32 : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %sum_1 = algebra.reduce_sum %wide dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %tx_2 = itgraph.tail %tx_1 dim 1 limit L - i_L * BL fill -inf : !algebra.tensor<[BM, BL], f16>
// CHECK-NEXT:        %max_1 = algebra.reduce_max %tx_2 dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %relu = algebra.relu %tx_1 : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %h = algebra.cast %relu to f16 : !algebra.tensor<[BM, BL], f16>
// CHECK-NEXT:        %h_1 = itgraph.tail %h dim 1 limit L - i_L * BL fill 0.0 : !algebra.tensor<[BM, BL], f16>
// CHECK-NEXT:        %product_1 = algebra.matmul %h_1, %tw_1 : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:        itgraph.next %sum_1, %max_1, %product_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %a = algebra.mul %sum, %max : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %o_1 = algebra.mul %product, %a : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// A dim that fits in one tile is no loop.
algebra.graph @fits [M, L, N] where [L = 32]
    (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @fits [M, L, N, BM] where [L = 32, BM = 64]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>, %w: !algebra.tensor<[L, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L], %tw = %w)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:      %o_1 = algebra.matmul %tx, %tw : !algebra.tensor<[BM, N], f32>
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// -----

// A reference becomes a value that the loop carries, and sums are rescaled as it grows.
algebra.graph @reference [M, L] where [L = 128]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %r = algebra.reference %x dim 1
  %d = algebra.sub %x, %r
  %e = algebra.exp %d
  %l = algebra.reduce_sum %e dim 1
  algebra.return %l
}

// CHECK-LABEL: itgraph.plan @reference [M, L, BM, BL] where [L = 128, BM = 64, BL = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:    %l = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L])
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:      %least = algebra.constant -1.0e+30 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %r, %l_1 = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL])
// CHECK-NEXT:          state (%r_acc = carry %least, %l_acc = sum %zero) {
// CHECK-NEXT:        %r_1 = algebra.reduce_max %tx_1 dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %r_2 = algebra.max %r_acc, %r_1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %0 = algebra.sub %r_acc, %r_2 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %rescale = algebra.exp %0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        %d = algebra.sub %tx_1, %r_2 : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %e = algebra.exp %d : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %l_2 = algebra.reduce_sum %e dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        itgraph.next %r_2, %l_2 rescale %rescale
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %l_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %l
// CHECK-NEXT:  }

// -----

// Masks move with the tile.
algebra.graph @mask [M, L] where [L = 128]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %mask = algebra.window diagonal L - M size 16 : !algebra.tensor<[M, L], i1>
  %column = algebra.iota dim 1 : !algebra.tensor<[1, L], i32>
  %c = algebra.cast %column to f32
  %b = algebra.add %x, %c
  %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
  %s = algebra.select %mask, %b, %zero
  %l = algebra.reduce_sum %s dim 1
  algebra.return %l
}

// CHECK-LABEL: itgraph.plan @mask [M, L, BM, BL] where [L = 128, BM = 64, BL = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:    %l = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, 0] tile [BM, L])
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %l_1 = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_L * BL] tile [BM, BL])
// CHECK-NEXT:          state (%l_acc = sum %zero_1) {
// CHECK-NEXT:        %mask = algebra.window diagonal i_M * BM - i_L * BL + L - M size 16 : !algebra.tensor<[BM, BL], i1>
// CHECK-NEXT:        %column = algebra.iota dim 1 start i_L * BL : !algebra.tensor<[1, BL], i32>
// CHECK-NEXT:        %c = algebra.cast %column to f32 : !algebra.tensor<[1, BL], f32>
// CHECK-NEXT:        %b = algebra.add %tx_1, %c : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %s = algebra.select %mask, %b, %zero : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %l_2 = algebra.reduce_sum %s dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:        itgraph.next %l_2
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %l_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %l
// CHECK-NEXT:  }

// -----

// A reference that no loop carries is written out: it is at least the lowest one.
algebra.graph @whole [M, L] where [L = 32]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %r = algebra.reference %x dim 1
  %d = algebra.sub %x, %r
  %e = algebra.exp %d
  %l = algebra.reduce_sum %e dim 1
  algebra.return %l
}

// CHECK-LABEL: itgraph.plan @whole
// CHECK:           %0 = algebra.reduce_max %tx dim 1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %1 = algebra.constant -1.0e+30 : !algebra.tensor<[], f32>
// CHECK-NEXT:      %r = algebra.max %0, %1 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %d = algebra.sub %tx, %r : !algebra.tensor<[BM, L], f32>
