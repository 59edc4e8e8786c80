// RUN: cleave-opt %s -p 'partition-split' | filecheck %s

// The paper's Fig. 5b: the split kernel emits a partial row sum and a partial product,
// the combine kernel adds both up over the parts and divides.

algebra.graph @attention_5 [H, M, L, D, E, s] where [s | L]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
     %v: !algebra.tensor<[H, L, E], f16>)
    -> (!algebra.tensor<[H, M, E], f16>)
    attributes {equals = @attention} {
  %ks = algebra.split %k dim 2 count s
  %vs = algebra.split %v dim 1 count s
  %t = algebra.matmul %q, %ks
  %p = algebra.exp %t
  %a = algebra.matmul %p, %vs
  %asum = algebra.reduce_sum %a dim 0
  %l = algebra.reduce_sum %p dim 3
  %lsum = algebra.reduce_sum %l dim 0
  %n = algebra.div %asum, %lsum
  %o = algebra.reshape %n to [H, M, E]
  algebra.return %o
}

// CHECK:      algebra.graph @attention_5_split [H, M, L, D, E, s] where [s | L]
// CHECK-NEXT:     (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>, %v: !algebra.tensor<[H, L, E], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[s, H, M, E], f32>, !algebra.tensor<[s, H, M, 1], f32>)
// CHECK-NEXT:     attributes {kernel = {of = "attention_5", number = 0 : i64, count = 2 : i64, symbols = ["H", "M", "L", "D", "E", "s"], operands = ["input 0", "input 1", "input 2"], results = ["passed on", "passed on"], equals = @attention}} {
// CHECK-NEXT:   %ks = algebra.split %k dim 2 count s : !algebra.tensor<[s, H, D, L floordiv s], f16>
// CHECK-NEXT:   %vs = algebra.split %v dim 1 count s : !algebra.tensor<[s, H, L floordiv s, E], f16>
// CHECK-NEXT:   %t = algebra.matmul %q, %ks : !algebra.tensor<[s, H, M, L floordiv s], f32>
// CHECK-NEXT:   %p = algebra.exp %t : !algebra.tensor<[s, H, M, L floordiv s], f32>
// CHECK-NEXT:   %a = algebra.matmul %p, %vs : !algebra.tensor<[s, H, M, E], f32>
// CHECK-NEXT:   %l = algebra.reduce_sum %p dim 3 : !algebra.tensor<[s, H, M, 1], f32>
// CHECK-NEXT:   algebra.return %a, %l
// CHECK-NEXT: }
// CHECK-NEXT: algebra.graph @attention_5_combine [H, M, L, D, E, s] where [s | L]
// CHECK-NEXT:     (%a: !algebra.tensor<[s, H, M, E], f32>, %l: !algebra.tensor<[s, H, M, 1], f32>)
// CHECK-NEXT:     -> (!algebra.tensor<[H, M, E], f16>)
// CHECK-NEXT:     attributes {kernel = {of = "attention_5", number = 1 : i64, count = 2 : i64, symbols = ["H", "M", "L", "D", "E", "s"], operands = ["kernel 0 result 0", "kernel 0 result 1"], results = ["output 0"], equals = @attention}} {
// CHECK-NEXT:   %asum = algebra.reduce_sum %a dim 0 : !algebra.tensor<[1, H, M, E], f32>
// CHECK-NEXT:   %lsum = algebra.reduce_sum %l dim 0 : !algebra.tensor<[1, H, M, 1], f32>
// CHECK-NEXT:   %n = algebra.div %asum, %lsum : !algebra.tensor<[1, H, M, E], f32>
// CHECK-NEXT:   %o = algebra.reshape %n to [H, M, E] : !algebra.tensor<[H, M, E], f32>
// CHECK-NEXT:   algebra.return %o
// CHECK-NEXT: }

// Two counts one after the other make three kernels; the second one has an input of the
// graph and passes on its own result.
algebra.graph @twice [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>, %y: !algebra.tensor<[M, 1], f32>)
    -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>) {
  %xs = algebra.split %x dim 1 count s
  %part = algebra.reduce_sum %xs dim 2
  %sum = algebra.reduce_sum %part dim 0
  %quotient = algebra.div %part, %sum
  %other = algebra.reduce_sum %quotient dim 0
  %a = algebra.reshape %other to [M, 1]
  %b = algebra.mul %sum, %y
  %c = algebra.reshape %b to [M, 1]
  algebra.return %a, %c
}

// CHECK:      algebra.graph @twice_0
// CHECK-NEXT:     (%x: !algebra.tensor<[M, K], f32>)
// CHECK:      algebra.graph @twice_1
// CHECK-NEXT:     (%y: !algebra.tensor<[M, 1], f32>, %part: !algebra.tensor<[s, M, 1], f32>)
// CHECK-NEXT:     -> (!algebra.tensor<[s, M, 1], f32>, !algebra.tensor<[M, 1], f32>)
// CHECK:          operands = ["input 1", "kernel 0 result 0"], results = ["passed on", "output 1"]
// CHECK:      algebra.graph @twice_2
// CHECK:          operands = ["kernel 1 result 0"], results = ["output 0"]

// Without a split there is nothing to cut.
// CHECK:      algebra.graph @whole [M, K]
// CHECK-NOT:  attributes
algebra.graph @whole [M, K] (%x: !algebra.tensor<[M, K], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}
