// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64"},schedule-reductions{tile="L=64"},plan-memory{threads=256 stages=3 swizzle=10 specialization=none}' | filecheck %s

// Two warpgroups on 64 rows divide the columns, so that none has whole rows of %p in its
// registers. An f32 product may be rounded to tf32 where the graph says so.
algebra.graph @options [M, L, D] where [L = 4096, D = 64]
    (%q: !algebra.tensor<[M, D], f32>, %k: !algebra.tensor<[L, D], f32>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs precision tf32
  %p = algebra.exp %s
  %n = algebra.cast %p to f16
  %o = algebra.matmul %n, %v
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @options [M, L, D, BM, BL] where [L = 4096, D = 64, BM = 64, BL = 64]
// CHECK-NEXT:      (%q: !algebra.tensor<[M, D], f32>, %k: !algebra.tensor<[L, D], f32>, %v: !algebra.tensor<[L, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, D], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tq = %q[i_M * BM, 0] tile [BM, D] in smem<swizzled>, %tk = %k in gmem, %tv = %v in gmem)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 3 : i64, swizzle = 10 : i64, warps = "columns", specialization = "none"} {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      %o_1 = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:          ins (%tk_1 = %tk[i_L * BL, 0] tile [BL, D] in smem<swizzled>, %tv_1 = %tv[i_L * BL, 0] tile [BL, D] in smem<swizzled>)
// CHECK-NEXT:          state (%o_acc = sum %zero in rmem<fragment>) {
// CHECK-NEXT:        %s = algebra.matmul %tq, %tk_1 transpose_rhs precision tf32 : !algebra.tensor<[BM, BL], f32> in rmem<fragment>
// CHECK-NEXT:        %p = algebra.exp %s : !algebra.tensor<[BM, BL], f32> in rmem<fragment>
// CHECK-NEXT:        %n = algebra.cast %p to f16 : !algebra.tensor<[BM, BL], f16> in rmem<fragment>
// CHECK-NEXT:        %n_1 = itgraph.copy %n to smem<swizzled> : !algebra.tensor<[BM, BL], f16>
// CHECK-NEXT:        %o_2 = algebra.matmul %n_1, %tv_1 : !algebra.tensor<[BM, D], f32> in rmem<fragment>
// CHECK-NEXT:        itgraph.next %o_2
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }
