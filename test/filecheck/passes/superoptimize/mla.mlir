// RUN: cleave-opt %s -p 'superoptimize{split=inputs}' | filecheck %s

// Latent attention uses one input as keys, transposed, and as values. Each of its three
// reduced dims can be split: the latent dim, the rotary dim, and the context.

algebra.graph @mla [B, H, L, C, R]
    (%q: !algebra.tensor<[B, H, C], f16>, %kv: !algebra.tensor<[B, L, C], f16>,
     %q_pe: !algebra.tensor<[B, H, R], f16>, %k_pe: !algebra.tensor<[B, L, R], f16>)
    -> (!algebra.tensor<[B, H, C], f16>) {
  %content = algebra.matmul %q, %kv transpose_rhs
  %position = algebra.matmul %q_pe, %k_pe transpose_rhs
  %s = algebra.add %content, %position
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %kv
  algebra.return %o
}

// CHECK:      algebra.graph @mla [B, H, L, C, R]
// CHECK:          attributes {search = {candidates = 11 : i64, sums = "distributed"}}
// CHECK:      algebra.graph @mla_2 [B, H, L, C, R]
// CHECK:        %[[O:.*]] = algebra.matmul %p, %kv : !algebra.tensor<[B, H, C], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[B, H, 1], f32>
// CHECK-NEXT:   %[[N:.*]] = algebra.div %[[O]], %l : !algebra.tensor<[B, H, C], f32>
// CHECK-NEXT:   algebra.return %[[N]]
// CHECK:      algebra.graph @mla_3 [B, H, L, C, R, s] where [s | C]
// CHECK:        algebra.split %kv dim 2 count s : !algebra.tensor<[s, B, L, C floordiv s], f16>
// CHECK:      algebra.graph @mla_4 [B, H, L, C, R, s] where [s | R]
// CHECK:        algebra.split %k_pe dim 2 count s : !algebra.tensor<[s, B, L, R floordiv s], f16>
// CHECK:      algebra.graph @mla_7 [B, H, L, C, R, s] where [s | L]
// CHECK-DAG:    %[[KV:.*]] = algebra.split %kv dim 1 count s : !algebra.tensor<[s, B, L floordiv s, C], f16>
// CHECK:        algebra.matmul %q, %[[KV]] transpose_rhs : !algebra.tensor<[s, B, H, L floordiv s], f32>
// CHECK:        algebra.matmul %{{.*}}, %[[KV]] : !algebra.tensor<[s, B, H, C], f32>
// CHECK:      algebra.graph @mla_10 [B, H, L, C, R, s_C, s_R] where [s_C | C, s_R | R]
