// RUN: cleave-opt %s -p 'superoptimize{split=inputs extra=2}' | filecheck %s

// Products reassociate, sums move through them, and each can be split (Split-K).

algebra.graph @product [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}

// CHECK:      algebra.graph @product_2 [M, K, N, s] where [s | K]
// CHECK:        %0 = algebra.split %x dim 1 count s : !algebra.tensor<[s, M, K floordiv s], f16>
// CHECK-NEXT:   %1 = algebra.split %w dim 0 count s : !algebra.tensor<[s, K floordiv s, N], f16>
// CHECK-NEXT:   %2 = algebra.matmul %0, %1 : !algebra.tensor<[s, M, N], f32>
// CHECK-NEXT:   %3 = algebra.reduce_sum %2 dim 0 : !algebra.tensor<[1, M, N], f32>
// CHECK-NEXT:   %4 = algebra.reshape %3 to [M, N] : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   algebra.return %4

// Q (K V) instead of (Q K) V
algebra.graph @chain [H, M, L, D, E]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, E], f16>)
    -> (!algebra.tensor<[H, M, E], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %o = algebra.matmul %s, %v
  algebra.return %o
}

// CHECK:      algebra.graph @chain_2 [H, M, L, D, E]
// CHECK:        %0 = algebra.matmul %k, %v transpose_lhs : !algebra.tensor<[H, D, E], f32>
// CHECK-NEXT:   %1 = algebra.matmul %q, %0 : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   algebra.return %1
// CHECK:      algebra.graph @chain_3 [H, M, L, D, E, s] where [s | {{[DL]}}]

// X rowsum(W) instead of rowsum(X W)
algebra.graph @rowsum [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, 1], f16>) {
  %y = algebra.matmul %x, %w
  %o = algebra.reduce_sum %y dim 1
  algebra.return %o
}

// CHECK:      algebra.graph @rowsum_2 [M, K, N]
// CHECK:        %0 = algebra.reduce_sum %w dim 1 : !algebra.tensor<[K, 1], f32>
// CHECK-NEXT:   %1 = algebra.matmul %x, %0 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   algebra.return %1

// One graph only without a split; each product may be split, or both.
algebra.graph @swiglu [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w1: !algebra.tensor<[K, N], f16>,
     %w2: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %a = algebra.matmul %x, %w1
  %b = algebra.matmul %x, %w2
  %g = algebra.silu %a
  %o = algebra.mul %g, %b
  algebra.return %o
}

// CHECK:      algebra.graph @swiglu_1 [M, K, N]
// CHECK-NOT:  algebra.graph @swiglu_{{[0-9]+}} [M, K, N]
// CHECK:      algebra.graph @swiglu_{{[0-9]+}} [M, K, N, s] where [s | K]
// CHECK:        algebra.reduce_sum %{{[0-9]+}} dim 0 : !algebra.tensor<[1, M, N], f32>

// (X W) / norm instead of (X / norm) W
algebra.graph @rmsnorm [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %squares = algebra.square %x
  %sum = algebra.reduce_sum %squares dim 1
  %norm = algebra.sqrt %sum
  %normal = algebra.div %x, %norm
  %o = algebra.matmul %normal, %w
  algebra.return %o
}

// CHECK:      algebra.graph @rmsnorm_2 [M, K, N]
// CHECK:        %0 = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   %squares = algebra.square %x : !algebra.tensor<[M, K], f32>
// CHECK-NEXT:   %sum = algebra.reduce_sum %squares dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %norm = algebra.sqrt %sum : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %1 = algebra.div %0, %norm : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   algebra.return %1

// X (W + A B) instead of X W + (X A) B
algebra.graph @lora [M, K, N, R]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>,
     %a: !algebra.tensor<[K, R], f16>, %b: !algebra.tensor<[R, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %xw = algebra.matmul %x, %w
  %xa = algebra.matmul %x, %a
  %xab = algebra.matmul %xa, %b
  %o = algebra.add %xw, %xab
  algebra.return %o
}

// CHECK:      algebra.graph @lora [M, K, N, R]
// CHECK:          attributes {search = {candidates = {{[0-9]+}} : i64, sums = "distributed"}}
// CHECK:        %0 = algebra.matmul %a, %b : !algebra.tensor<[K, N], f32>
// CHECK-NEXT:   %1 = algebra.add %w, %0 : !algebra.tensor<[K, N], f32>
// CHECK-NEXT:   %2 = algebra.matmul %x, %1 : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   algebra.return %2
