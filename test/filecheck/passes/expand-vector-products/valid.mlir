// RUN: cleave-opt %s -p expand-vector-products --split-input-file | filecheck %s

algebra.graph @column [B, M, K]
    (%x: !algebra.tensor<[B, M, K], f16>, %r: !algebra.tensor<[B, K, 1], f16>)
    -> (!algebra.tensor<[B, M, 1], f32>) {
  %o = algebra.matmul %x, %r
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @column
// CHECK:         %0 = algebra.reshape %r to [B, 1, K] : !algebra.tensor<[B, 1, K], f16>
// CHECK-NEXT:    %1 = algebra.mul %x, %0 : !algebra.tensor<[B, M, K], f32>
// CHECK-NEXT:    %o = algebra.reduce_sum %1 dim 2 : !algebra.tensor<[B, M, 1], f32>
// CHECK-NEXT:    algebra.return %o

// -----

algebra.graph @row [K, N]
    (%x: !algebra.tensor<[1, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[1, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @row
// CHECK:         %0 = algebra.reshape %x to [K, 1] : !algebra.tensor<[K, 1], f16>
// CHECK-NEXT:    %1 = algebra.mul %w, %0 : !algebra.tensor<[K, N], f32>
// CHECK-NEXT:    %o = algebra.reduce_sum %1 dim 0 : !algebra.tensor<[1, N], f32>

// -----

// The vector lies as it is needed already.
algebra.graph @transposed_row [K, N]
    (%x: !algebra.tensor<[1, K], f16>, %w: !algebra.tensor<[N, K], f16>)
    -> (!algebra.tensor<[1, N], f32>) {
  %o = algebra.matmul %x, %w transpose_rhs
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @transposed_row
// CHECK:         %0 = algebra.mul %w, %x : !algebra.tensor<[N, K], f32>
// CHECK-NEXT:    %1 = algebra.reduce_sum %0 dim 1 : !algebra.tensor<[N, 1], f32>
// CHECK-NEXT:    %o = algebra.reshape %1 to [1, N] : !algebra.tensor<[1, N], f32>

// -----

algebra.graph @outer [M, N]
    (%x: !algebra.tensor<[1, M], f16>, %w: !algebra.tensor<[1, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w transpose_lhs
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @outer
// CHECK:         %0 = algebra.reshape %x to [M, 1] : !algebra.tensor<[M, 1], f16>
// CHECK:         %o = algebra.mul %0, %{{.*}} : !algebra.tensor<[M, N], f32>

// -----

// Two matrices, and a vector beside a matrix that is held transposed, stay a matmul.
algebra.graph @matrices [M, K, N]
    (%x: !algebra.tensor<[K, M], f16>, %w: !algebra.tensor<[K, N], f16>, %r: !algebra.tensor<[K, 1], f16>)
    -> (!algebra.tensor<[M, N], f32>, !algebra.tensor<[M, 1], f32>) {
  %o = algebra.matmul %x, %w transpose_lhs
  %p = algebra.matmul %x, %r transpose_lhs
  algebra.return %o, %p
}

// CHECK-LABEL: algebra.graph @matrices
// CHECK:         %o = algebra.matmul %x, %w transpose_lhs : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %p = algebra.matmul %x, %r transpose_lhs : !algebra.tensor<[M, 1], f32>
