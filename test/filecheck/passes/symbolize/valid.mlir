// RUN: cleave-opt %s -p symbolize | filecheck %s
// RUN: cleave-opt %s -p symbolize,symbolize | filecheck %s
// RUN: cleave-opt %s -p symbolize,substitute-facts | filecheck %s --check-prefix=BACK

// The example of the paper's appendix A: one group a reduction dim, a batch dim that is
// broadcast in none. Dims of one extent are told apart by their use: 64 and 64 here.

// CHECK:      algebra.graph @matmul [d0, d1, d2, d3] where [d0 = 8, d1 = 64, d2 = 64, d3 = 128]
// CHECK-NEXT:     (%a: !algebra.tensor<[d0, d1, d2], f16>, %b: !algebra.tensor<[1, d2, d3], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[d0, d1, d3], f32>)
// CHECK-NEXT:     attributes {groups = {d0 = ["a 0"], d1 = ["a 1"], d2 = ["a 2", "b 1"], d3 = ["b 2"]}} {
// CHECK-NEXT:   %c = algebra.matmul %a, %b : !algebra.tensor<[d0, d1, d3], f32>
// CHECK-NEXT:   algebra.return %c
// CHECK-NEXT: }
// BACK:       algebra.graph @matmul
// BACK-NEXT:      (%a: !algebra.tensor<[8, 64, 64], f16>, %b: !algebra.tensor<[1, 64, 128], f16>)
algebra.graph @matmul
    (%a: !algebra.tensor<[8, 64, 64], f16>, %b: !algebra.tensor<[1, 64, 128], f16>)
    -> (!algebra.tensor<[8, 64, 128], f32>) {
  %c = algebra.matmul %a, %b
  algebra.return %c
}

// A dim that is seen as two is the product of their symbols; an elementwise operator
// joins what it does not broadcast; numbers that are no extents stay.
// CHECK:      algebra.graph @heads [d0, d1, d2, d3] where [d0 = 4, d1 = 2, d2 = 16, d3 = 64]
// CHECK-NEXT:     (%q: !algebra.tensor<[d0 * d1, d2, d3], f16>, %bias: !algebra.tensor<[d3], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[d0, d1, d2, 1], f32>)
// CHECK:        %g = algebra.reshape %q to [d0, d1, d2, d3] : !algebra.tensor<[d0, d1, d2, d3], f16>
// CHECK-NEXT:   %s = algebra.add %g, %bias : !algebra.tensor<[d0, d1, d2, d3], f32>
// CHECK-NEXT:   %c = algebra.constant 64 : !algebra.tensor<[], f32>
// CHECK-NEXT:   %m = algebra.div %s, %c : !algebra.tensor<[d0, d1, d2, d3], f32>
// CHECK-NEXT:   %r = algebra.reduce_sum %m dim 3 : !algebra.tensor<[d0, d1, d2, 1], f32>
algebra.graph @heads
    (%q: !algebra.tensor<[8, 16, 64], f16>, %bias: !algebra.tensor<[64], f16>)
    -> (!algebra.tensor<[4, 2, 16, 1], f32>) {
  %g = algebra.reshape %q to [4, 2, 16, 64]
  %s = algebra.add %g, %bias
  %c = algebra.constant 64 : !algebra.tensor<[], f32>
  %m = algebra.div %s, %c
  %r = algebra.reduce_sum %m dim 3
  algebra.return %r
}

// Symbols stay, and so does a graph that has nothing else.
// CHECK:      algebra.graph @mixed [M, d0, d1] where [M >= 2, d1 = 64]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, d1], f16>, %d0: !algebra.tensor<[d0], f16>)
algebra.graph @mixed [M, d0] where [M >= 2]
    (%x: !algebra.tensor<[M, 64], f16>, %d0: !algebra.tensor<[d0], f16>)
    -> (!algebra.tensor<[M, 64], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}

// CHECK:      algebra.graph @symbolic [M]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, 1], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[M, 1], f32>) {
algebra.graph @symbolic [M] (%x: !algebra.tensor<[M, 1], f16>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}

// The number that a symbol is written with stays, and so does what equals it.
// CHECK:      algebra.graph @halves [K, d0] where [2 | K, d0 = 8]
// CHECK-NEXT:     (%x: !algebra.tensor<[d0, K], f32>, %y: !algebra.tensor<[2 * d0], f32>)
// CHECK-NEXT:     -> (!algebra.tensor<[1, d0, 1], f32>)
// CHECK-NEXT:     attributes {groups = {d0 = ["x 0"]}} {
// CHECK-NEXT:   %a = algebra.split %x dim 1 count 2 : !algebra.tensor<[2, d0, K floordiv 2], f32>
// CHECK-NEXT:   %b = algebra.reduce_sum %a dim 2 : !algebra.tensor<[2, d0, 1], f32>
// CHECK-NEXT:   %z = algebra.reshape %y to [2, d0, 1] : !algebra.tensor<[2, d0, 1], f32>
algebra.graph @halves [K] where [2 | K]
    (%x: !algebra.tensor<[8, K], f32>, %y: !algebra.tensor<[16], f32>)
    -> (!algebra.tensor<[1, 8, 1], f32>) {
  %a = algebra.split %x dim 1 count 2
  %b = algebra.reduce_sum %a dim 2
  %z = algebra.reshape %y to [2, 8, 1]
  %w = algebra.mul %b, %z
  %c = algebra.reduce_sum %w dim 0
  algebra.return %c
}
