// RUN: cleave-opt %s -p 'partition-split' --split-input-file --verify-diagnostics | filecheck %s

// CHECK: pass 'partition-split': graph @matmul_behind: a matmul behind the split kernel
algebra.graph @matmul_behind [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[M, M], f32>)
    -> (!algebra.tensor<[1, M, 1], f32>) {
  %xs = algebra.split %x dim 1 count s
  %part = algebra.reduce_sum %xs dim 2
  %sum = algebra.reduce_sum %part dim 0
  %y = algebra.matmul %w, %sum
  algebra.return %y
}

// -----

// CHECK: pass 'partition-split': graph @normalized: a computed tensor crosses with the dim of the parts
algebra.graph @normalized [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[1, M, 1], f32>) {
  %xs = algebra.split %x dim 1 count s
  %p = algebra.exp %xs
  %part = algebra.reduce_sum %p dim 2
  %sum = algebra.reduce_sum %part dim 0
  %n = algebra.div %p, %sum
  %npart = algebra.reduce_sum %n dim 2
  %nsum = algebra.reduce_sum %npart dim 0
  algebra.return %nsum
}

// -----

// Candidates are dropped instead and counted.
// CHECK: algebra.graph @origin [M, K]
// CHECK:     attributes {refused = {"a matmul behind the split kernel" = 1 : i64}}
// CHECK-NOT: algebra.graph @origin_2
algebra.graph @origin [M, K]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[M, M], f32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %sum = algebra.reduce_sum %x dim 1
  %y = algebra.matmul %w, %sum
  algebra.return %y
}
algebra.graph @origin_2 [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[M, M], f32>)
    -> (!algebra.tensor<[M, 1], f32>)
    attributes {equals = @origin} {
  %xs = algebra.split %x dim 1 count s
  %part = algebra.reduce_sum %xs dim 2
  %sum = algebra.reduce_sum %part dim 0
  %s1 = algebra.reshape %sum to [M, 1]
  %y = algebra.matmul %w, %s1
  algebra.return %y
}
