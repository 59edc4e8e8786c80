// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64 s=1"},schedule-reductions{tile="N=128 K=32 L"}' | filecheck %s

// A reduction of which another is computed is in the loop of that one, and so on. The
// tile of K also divides a part of K, and that of L is a symbol.
algebra.graph @nested [M, K, L, N, P, s] where [s | K, K = 4096, s = 4, N = 1024]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, L], f16>,
     %u: !algebra.tensor<[L, N], f16>, %v: !algebra.tensor<[N, P], f16>)
    -> (!algebra.tensor<[s, M, P], f32>) {
  %xs = algebra.split %x dim 1 count s
  %ws = algebra.split %w dim 0 count s
  %a = algebra.matmul %xs, %ws
  %b = algebra.relu %a
  %c = algebra.matmul %b, %u
  %d = algebra.relu %c
  %o = algebra.matmul %d, %v
  algebra.return %o
}

// CHECK-LABEL: itgraph.plan @nested [M, K, L, N, P, s, BM, BL, BN, BK] where [s | K, K = 4096, s = 4, N = 1024, BM = 64, BN = 128, BK = 32]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, L], f16>, %u: !algebra.tensor<[L, N], f16>, %v: !algebra.tensor<[N, P], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[s, M, P], f32>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_s = 0 to s, i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tx = %x[i_M * BM, i_s * (K floordiv s)] tile [BM, K floordiv s], %tw = %w[i_s * (K floordiv s), 0] tile [K floordiv s, L], %tu = %u, %tv = %v)
// CHECK-NEXT:        outs ([i_s, i_M * BM, 0] of !algebra.tensor<[s, M, P], f32>) {
// CHECK-NEXT:      %zero = algebra.constant 0.0 : !algebra.tensor<[1, BM, L], f32>
// CHECK-NEXT:      %a = itgraph.loop (i_K = 0 to (K floordiv s) ceildiv BK)
// CHECK-NEXT:          ins (%tx_1 = %tx[0, i_K * BK] tile [BM, BK], %tw_1 = %tw[i_K * BK, 0] tile [BK, L])
// CHECK-NEXT:          state (%a_acc = sum %zero) {
// CHECK-NEXT:        %xs = algebra.reshape %tx_1 to [1, BM, BK] : !algebra.tensor<[1, BM, BK], f16>
// CHECK-NEXT:        %ws = algebra.reshape %tw_1 to [1, BK, L] : !algebra.tensor<[1, BK, L], f16>
// CHECK-NEXT:        %a_1 = algebra.matmul %xs, %ws : !algebra.tensor<[1, BM, L], f32>
// CHECK-NEXT:        itgraph.next %a_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %b = algebra.relu %a : !algebra.tensor<[1, BM, L], f32>
// CHECK-NEXT:      %zero_1 = algebra.constant 0.0 : !algebra.tensor<[1, BM, P], f32>
// CHECK-NEXT:      %o_1 = itgraph.loop (i_N = 0 to N ceildiv BN)
// CHECK-NEXT:          ins (%tu_1 = %tu[0, i_N * BN] tile [L, BN], %tv_1 = %tv[i_N * BN, 0] tile [BN, P])
// CHECK-NEXT:          state (%o_acc = sum %zero_1) {
// CHECK-NEXT:        %zero_2 = algebra.constant 0.0 : !algebra.tensor<[1, BM, BN], f32>
// CHECK-NEXT:        %c = itgraph.loop (i_L = 0 to L ceildiv BL)
// CHECK-NEXT:            ins (%b_1 = %b[0, 0, i_L * BL] tile [1, BM, BL], %tu_2 = %tu_1[i_L * BL, 0] tile [BL, BN])
// CHECK-NEXT:            state (%c_acc = sum %zero_2) {
// CHECK-NEXT:          %b_2 = itgraph.tail %b_1 dim 2 limit L - i_L * BL fill 0.0 : !algebra.tensor<[1, BM, BL], f32>
// CHECK-NEXT:          %c_1 = algebra.matmul %b_2, %tu_2 : !algebra.tensor<[1, BM, BN], f32>
// CHECK-NEXT:          itgraph.next %c_1
// CHECK-NEXT:        }
// CHECK-NEXT:        %d = algebra.relu %c : !algebra.tensor<[1, BM, BN], f32>
// CHECK-NEXT:        %o_2 = algebra.matmul %d, %tv_1 : !algebra.tensor<[1, BM, P], f32>
// CHECK-NEXT:        itgraph.next %o_2
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %o_1
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }
