// RUN: cleave-opt %s -p 'call-libraries' --split-input-file | filecheck %s

// A product that is rounded once. What a piece is a piece of stays.
algebra.graph @product [M, K, N] where [K = 64]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[N, K], f16>)
    -> (!algebra.tensor<[M, N], f16>) attributes {note = "kept"} {
  %y = algebra.matmul %x, %w transpose_rhs
  %o = algebra.cast %y to f16
  algebra.return %o
}

// CHECK:      itgraph.plan @product [M, K, N] where [K = 64]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[N, K], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[M, N], f16>)
// CHECK-NEXT:     attributes {note = "kept"} {
// CHECK-NEXT:   %y = itgraph.library_matmul %x, %w transpose_rhs to f16 : !algebra.tensor<[M, N], f16>
// CHECK-NEXT:   itgraph.return %y
// CHECK-NEXT: }

// -----

// All rows of a batch times one matrix are one product.
algebra.graph @rows [B, M, K, N]
    (%x: !algebra.tensor<[B * M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[B, M * N], f32>) {
  %xs = algebra.reshape %x to [B, M, K]
  %y = algebra.matmul %xs, %w
  %o = algebra.reshape %y to [B, M * N]
  algebra.return %o
}

// CHECK:      itgraph.plan @rows
// CHECK:        %y = itgraph.library_matmul %x, %w to f32 : !algebra.tensor<[B * M, N], f32>
// CHECK-NEXT:   %y_1 = algebra.reshape %y to [B, M * N] : !algebra.tensor<[B, M * N], f32>
// CHECK-NEXT:   itgraph.return %y_1

// -----

// Stacks of matrices of several dims become stacks of one.
algebra.graph @stacks [B, H, M, K, N]
    (%x: !algebra.tensor<[B, H, K, M], f16>, %w: !algebra.tensor<[B, H, K, N], f16>)
    -> (!algebra.tensor<[B, H, M, N], f16>) {
  %y = algebra.matmul %x, %w transpose_lhs
  algebra.return %y
}

// CHECK:      itgraph.plan @stacks
// CHECK:        %x_1 = algebra.reshape %x to [B * H, K, M]
// CHECK-NEXT:   %w_1 = algebra.reshape %w to [B * H, K, N]
// CHECK-NEXT:   %y = itgraph.library_matmul %x_1, %w_1 transpose_lhs to f16 : !algebra.tensor<[B * H, M, N], f16>
// CHECK-NEXT:   %y_1 = algebra.reshape %y to [B, H, M, N]

// -----

// Queries of a group with the keys of one head: their rows together are one matrix.
algebra.graph @broadcast [H, G, M, K, N]
    (%x: !algebra.tensor<[H, G, M, K], f16>, %w: !algebra.tensor<[H, 1, K, N], f16>)
    -> (!algebra.tensor<[H, G, M, N], f16>) {
  %y = algebra.matmul %x, %w
  algebra.return %y
}

// CHECK:      itgraph.plan @broadcast
// CHECK:        %x_1 = algebra.reshape %x to [H, G * M, K]
// CHECK-NEXT:   %w_1 = algebra.reshape %w to [H, K, N]
// CHECK-NEXT:   %y = itgraph.library_matmul %x_1, %w_1 to f16 : !algebra.tensor<[H, G * M, N], f16>
// CHECK-NEXT:   %y_1 = algebra.reshape %y to [H, G, M, N]

// -----

// Not alone, of computed operands, of rows that are not together in memory or a batch
// that broadcasts on the left, rounded twice, on tf32.
// CHECK-NOT: itgraph.plan
algebra.graph @epilogue [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %y = algebra.matmul %x, %w
  %o = algebra.silu %y
  algebra.return %o
}
algebra.graph @computed [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %e = algebra.exp %x
  %y = algebra.matmul %e, %w
  algebra.return %y
}
algebra.graph @apart [H, G, M, K, N]
    (%x: !algebra.tensor<[H, G, K, M], f16>, %w: !algebra.tensor<[H, 1, K, N], f16>)
    -> (!algebra.tensor<[H, G, M, N], f16>) {
  %y = algebra.matmul %x, %w transpose_lhs
  algebra.return %y
}
algebra.graph @left [H, G, M, K, N]
    (%x: !algebra.tensor<[H, 1, M, K], f16>, %w: !algebra.tensor<[H, G, K, N], f16>)
    -> (!algebra.tensor<[H, G, M, N], f16>) {
  %y = algebra.matmul %x, %w
  algebra.return %y
}
algebra.graph @twice [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %y = algebra.matmul %x, %w
  %o = algebra.cast %y to bf16
  algebra.return %o
}
algebra.graph @tf32 [M, K, N]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %y = algebra.matmul %x, %w precision tf32
  algebra.return %y
}
