// RUN: cleave-opt %s -p 'superoptimize{split=inputs extra=2}' | filecheck %s

// A mask takes part in everything that a product does. Constants, generators and a
// second result (the log-sum-exp) come along.

algebra.graph @masked [H, M, L, D, E]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, E], f16>)
    -> (!algebra.tensor<[H, M, E], f16>, !algebra.tensor<[H, M, 1], f32>) {
  %scale = algebra.constant 0.088 : !algebra.tensor<[], f32>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.mul %qk, %scale
  %seen = algebra.select %mask, %s, %hidden
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  %lse = algebra.log %l
  algebra.return %o, %lse
}

// CHECK:      algebra.graph @masked_2 [H, M, L, D, E]
// CHECK:        %qk = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %s = algebra.mul %qk, %scale : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %seen = algebra.select %mask, %s, %hidden : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %p = algebra.exp %seen : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %[[A:.*]] = algebra.matmul %p, %v : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %[[O:.*]] = algebra.div %[[A]], %l : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   %lse = algebra.log %l : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   algebra.return %[[O]], %lse

// The split mask meets the split scores.
// CHECK:      algebra.graph @masked_{{[0-9]+}} [H, M, L, D, E, s] where [s | L]
// CHECK:        %[[M:.*]] = algebra.reshape %mask to [1, M, L] : !algebra.tensor<[1, M, L], i1>
// CHECK-NEXT:   %[[S:.*]] = algebra.split %[[M]] dim 2 count s : !algebra.tensor<[s, 1, M, L floordiv s], i1>
// CHECK:        algebra.select %[[S]], %{{.*}}, %hidden : !algebra.tensor<[s, H, M, L floordiv s], f32>

// Softmax as people write it, with and without the shift by its maximum. That may also
// be taken over the parts of a dim.
algebra.graph @softmax [M, L] (%s: !algebra.tensor<[M, L], f32>)
    -> (!algebra.tensor<[M, L], f32>) {
  %m = algebra.reduce_max %s dim 1
  %d = algebra.sub %s, %m
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %p, %l
  algebra.return %n
}

// CHECK:      algebra.graph @softmax_2 [M, L]
// CHECK:        %[[P:.*]] = algebra.exp %s : !algebra.tensor<[M, L], f32>
// CHECK-NEXT:   %[[L:.*]] = algebra.reduce_sum %[[P]] dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %[[N:.*]] = algebra.div %[[P]], %[[L]] : !algebra.tensor<[M, L], f32>
// CHECK-NEXT:   algebra.return %[[N]]
// CHECK:      algebra.graph @softmax_{{[0-9]+}} [M, L, s] where [s | L]
// CHECK:        %[[P:.*]] = algebra.reduce_max %{{.*}} dim 2 : !algebra.tensor<[s, M, 1], f32>
// CHECK-NEXT:   algebra.reduce_max %[[P]] dim 0 : !algebra.tensor<[1, M, 1], f32>
