// RUN: cleave-opt %s -p 'superoptimize{split=inputs}' | filecheck %s

// The paper's Fig. 5: 5a divides behind the V-matmul; 5b splits the keys and values and
// combines partial sums and products.

algebra.graph @attention [H, M, L, D, E]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
     %v: !algebra.tensor<[H, L, E], f16>)
    -> (!algebra.tensor<[H, M, E], f16>) {
  %s = algebra.matmul %q, %k
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}

// CHECK:      algebra.graph @attention [H, M, L, D, E]
// CHECK:          attributes {search = {candidates = 7 : i64, sums = "none"}}

// The original is the first candidate.
// CHECK:      algebra.graph @attention_1 [H, M, L, D, E]
// CHECK:          attributes {equals = @attention} {
// CHECK-NEXT:   %s = algebra.matmul %q, %k : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %p = algebra.exp %s : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %n = algebra.div %p, %l : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %o = algebra.matmul %n, %v : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   algebra.return %o
// CHECK-NEXT: }

// Fig. 5a
// CHECK-NEXT: algebra.graph @attention_2 [H, M, L, D, E]
// CHECK:          attributes {equals = @attention, verified = {seeds = array<i64: 1, 2>, trials = 2 : i64, sizes = {{{.*}}}, float64 = true}} {
// CHECK-NEXT:   %s = algebra.matmul %q, %k : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %p = algebra.exp %s : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:   %0 = algebra.matmul %p, %v : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:   %1 = algebra.div %0, %l : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   algebra.return %1
// CHECK-NEXT: }

// Fig. 5b
// CHECK:      algebra.graph @attention_5 [H, M, L, D, E, s] where [s | L]
// CHECK:          attributes {equals = @attention
// CHECK-NEXT:   %0 = algebra.split %k dim 2 count s : !algebra.tensor<[s, H, D, L floordiv s], f16>
// CHECK-NEXT:   %1 = algebra.split %v dim 1 count s : !algebra.tensor<[s, H, L floordiv s, E], f16>
// CHECK-NEXT:   %2 = algebra.matmul %q, %0 : !algebra.tensor<[s, H, M, L floordiv s], f32>
// CHECK-NEXT:   %3 = algebra.exp %2 : !algebra.tensor<[s, H, M, L floordiv s], f32>
// CHECK-NEXT:   %4 = algebra.matmul %3, %1 : !algebra.tensor<[s, H, M, E], f32>
// CHECK-NEXT:   %5 = algebra.reduce_sum %4 dim 0 : !algebra.tensor<[1, H, M, E], f32>
// CHECK-NEXT:   %6 = algebra.reduce_sum %3 dim 3 : !algebra.tensor<[s, H, M, 1], f32>
// CHECK-NEXT:   %7 = algebra.reduce_sum %6 dim 0 : !algebra.tensor<[1, H, M, 1], f32>
// CHECK-NEXT:   %8 = algebra.div %5, %7 : !algebra.tensor<[1, H, M, E], f32>
// CHECK-NEXT:   %9 = algebra.reshape %8 to [H, M, E] : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   algebra.return %9
// CHECK-NEXT: }
