// RUN: not cleave-opt %s -p substitute-facts 2>&1 | filecheck %s

// CHECK: error: pass 'substitute-facts': 'algebra.constant' op: dim 1 of a tensor is 0, but dims are at least 1 (with N = 4, M = 4)
algebra.graph @no_elements [M, N] where [N = 4, M = N]
    (%x: !algebra.tensor<[2, M], f32>) -> (!algebra.tensor<[2, 1], f32>) {
  %c = algebra.constant 1.0 : !algebra.tensor<[2, M - N], f32>
  %o = algebra.reduce_sum %c dim 1
  algebra.return %o
}
