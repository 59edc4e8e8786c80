// RUN: cleave-opt %s -p 'specialize{counts=2,22}' --split-input-file --verify-diagnostics | filecheck %s

// A symbol that ends in a digit is told apart from its count, and names are free.

// CHECK: algebra.graph @rows_s2_2 [K, s] where [K = 44, s | K, s = 2]
// CHECK: algebra.graph @rows_s22 [K, s] where [K = 44, s | K, s = 22]
// CHECK: algebra.graph @s2_s2_2_2 [K, s2] where [K = 44, s2 | K, s2 = 2]
// CHECK: algebra.graph @s2_s2_22 [K, s2] where [K = 44, s2 | K, s2 = 22]
// CHECK: algebra.graph @rows_s2 [K] where [K = 44]
// CHECK: algebra.graph @s2_s2_2 [K] where [K = 44]
algebra.graph @rows [K, s] where [K = 44, s | K]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[1, 1], f32>) {
  %0 = algebra.split %x dim 0 count s
  %1 = algebra.reduce_sum %0 dim 1
  %2 = algebra.reduce_sum %1 dim 0
  algebra.return %2
}
algebra.graph @s2 [K, s2] where [K = 44, s2 | K]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[1, 1], f32>) {
  %0 = algebra.split %x dim 0 count s2
  %1 = algebra.reduce_sum %0 dim 1
  %2 = algebra.reduce_sum %1 dim 0
  algebra.return %2
}
algebra.graph @rows_s2 [K] where [K = 44]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[K], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}
algebra.graph @s2_s2_2 [K] where [K = 44]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[K], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}

// -----

// A part may be split again.
// CHECK: algebra.graph @nested_s2_t2 [K, s, t] where [K = 8, s | K, t | K floordiv s, s = 2, t = 2]
algebra.graph @nested [K, s, t] where [K = 8, s | K, t | K floordiv s]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[1, 1, 1], f32>) {
  %0 = algebra.split %x dim 0 count s
  %1 = algebra.split %0 dim 1 count t
  %2 = algebra.reduce_sum %1 dim 2
  %3 = algebra.reduce_sum %2 dim 1
  %4 = algebra.reduce_sum %3 dim 0
  algebra.return %4
}

// -----

// CHECK: pass 'specialize': graph @odd: no count divides K, which is 7
algebra.graph @odd [K, s] where [K = 7, s | K]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[1, 1], f32>) {
  %0 = algebra.split %x dim 0 count s
  %1 = algebra.reduce_sum %0 dim 1
  %2 = algebra.reduce_sum %1 dim 0
  algebra.return %2
}

// -----

// CHECK: pass 'specialize': graph @lone says that it equals @gone, which is no original graph of the module
algebra.graph @lone [K] where [K = 8]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[K], f32>)
    attributes {equals = @gone} {
  %y = algebra.exp %x
  algebra.return %y
}

// -----

// CHECK: pass 'specialize': graph @piece is a piece of a graph whose splits have no counts; run specialize before partition-split
algebra.graph @piece [K, s] where [K = 8, s | K]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[s, 1], f32>)
    attributes {kernel = {of = "whole", number = 0 : i64, count = 2 : i64, symbols = ["K", "s"], operands = ["input 0"], results = ["passed on"]}} {
  %0 = algebra.split %x dim 0 count s
  %1 = algebra.reduce_sum %0 dim 1
  algebra.return %1
}

// -----

// CHECK: pass 'specialize': graph @narcissus says that it equals @narcissus, which is no original graph of the module
algebra.graph @narcissus [K] where [K = 8]
    (%x: !algebra.tensor<[K], f32>) -> (!algebra.tensor<[K], f32>)
    attributes {equals = @narcissus} {
  %y = algebra.exp %x
  algebra.return %y
}
