// RUN: cleave-opt %s -p fold-broadcast --split-input-file | filecheck %s

// The queries of a group become rows of one matmul; inputs and results are only viewed.
algebra.graph @gqa [H, G, M, L, D]
    (%q: !algebra.tensor<[G * H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>, %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[G * H, M, D], f32>) {
  %qg = algebra.reshape %q to [H, G, M, D]
  %kg = algebra.reshape %k to [H, 1, D, L]
  %vg = algebra.reshape %v to [H, 1, L, D]
  %s = algebra.matmul %qg, %kg
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 3
  %a = algebra.matmul %p, %vg
  %og = algebra.div %a, %l
  %o = algebra.reshape %og to [G * H, M, D]
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @gqa
// CHECK-NEXT:      (%q: !algebra.tensor<[G * H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>, %v: !algebra.tensor<[H, L, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[G * H, M, D], f32>) {
// CHECK-NEXT:    %qg = algebra.reshape %q to [H, G * M, D] : !algebra.tensor<[H, G * M, D], f16>
// CHECK-NEXT:    %kg = algebra.reshape %k to [H, D, L] : !algebra.tensor<[H, D, L], f16>
// CHECK-NEXT:    %s = algebra.matmul %qg, %kg : !algebra.tensor<[H, G * M, L], f32>
// CHECK-NEXT:    %p = algebra.exp %s : !algebra.tensor<[H, G * M, L], f32>
// CHECK-NEXT:    %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, G * M, 1], f32>
// CHECK-NEXT:    %vg = algebra.reshape %v to [H, L, D] : !algebra.tensor<[H, L, D], f16>
// CHECK-NEXT:    %a = algebra.matmul %p, %vg : !algebra.tensor<[H, G * M, D], f32>
// CHECK-NEXT:    %og = algebra.div %a, %l : !algebra.tensor<[H, G * M, D], f32>
// CHECK-NEXT:    %o = algebra.reshape %og to [G * H, M, D] : !algebra.tensor<[G * H, M, D], f32>
// CHECK-NEXT:    algebra.return %o
// CHECK-NEXT:  }

// -----

// A weight that has no batch dim at all: the batch folds, twice.
algebra.graph @project [A, B, M, K, N]
    (%x: !algebra.tensor<[A, B, M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[A, B, M, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @project
// CHECK:         %x_1 = algebra.reshape %x to [A * B * M, K] : !algebra.tensor<[A * B * M, K], f16>
// CHECK-NEXT:    %o = algebra.matmul %x_1, %w : !algebra.tensor<[A * B * M, N], f32>
// CHECK-NEXT:    %o_1 = algebra.reshape %o to [A, B, M, N] : !algebra.tensor<[A, B, M, N], f32>
// CHECK-NEXT:    algebra.return %o_1

// -----

// The mask tells the rows of different queries apart: nothing folds.
algebra.graph @masked [G, M, L, D]
    (%q: !algebra.tensor<[G, M, D], f16>, %k: !algebra.tensor<[1, L, D], f16>)
    -> (!algebra.tensor<[G, M, L], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %seen = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %o = algebra.select %seen, %s, %least
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @masked
// CHECK:         %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[G, M, L], f32>

// -----

// So does a sum over the queries of a group.
algebra.graph @summed [G, M, L, D]
    (%q: !algebra.tensor<[G, M, D], f16>, %k: !algebra.tensor<[1, L, D], f16>)
    -> (!algebra.tensor<[1, M, L], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %o = algebra.reduce_sum %s dim 0
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @summed
// CHECK:         %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[G, M, L], f32>

// -----

// Every batch has its own keys.
algebra.graph @apart [H, M, L, D]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, L], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  algebra.return %s
}

// CHECK-LABEL: algebra.graph @apart
// CHECK:         %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[H, M, L], f32>
