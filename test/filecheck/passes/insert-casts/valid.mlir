// RUN: cleave-opt %s -p insert-casts --split-input-file | filecheck %s
// RUN: cleave-opt %s -p insert-casts,insert-casts --split-input-file | filecheck %s

// A computed operand of a matmul is rounded to the type of the input beside it, and the
// result to its declared type. Everything else stays in f32.
algebra.graph @attention [M, L, D]
    (%q: !algebra.tensor<[M, D], bf16>, %k: !algebra.tensor<[L, D], bf16>,
     %v: !algebra.tensor<[L, D], bf16>)
    -> (!algebra.tensor<[M, D], bf16>, !algebra.tensor<[M, 1], f32>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o, %l
}

// CHECK-LABEL: algebra.graph @attention [M, L, D]
// CHECK-NEXT:      (%q: !algebra.tensor<[M, D], bf16>, %k: !algebra.tensor<[L, D], bf16>, %v: !algebra.tensor<[L, D], bf16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, D], bf16>, !algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:    %s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[M, L], f32>
// CHECK-NEXT:    %p = algebra.exp %s : !algebra.tensor<[M, L], f32>
// CHECK-NEXT:    %p_1 = algebra.cast %p to bf16 : !algebra.tensor<[M, L], bf16>
// CHECK-NEXT:    %l = algebra.reduce_sum %p dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:    %a = algebra.matmul %p_1, %v : !algebra.tensor<[M, D], f32>
// CHECK-NEXT:    %o = algebra.div %a, %l : !algebra.tensor<[M, D], f32>
// CHECK-NEXT:    %o_1 = algebra.cast %o to bf16 : !algebra.tensor<[M, D], bf16>
// CHECK-NEXT:    algebra.return %o_1, %l
// CHECK-NEXT:  }

// -----

// A value is rounded once, however many matmuls and results want it.
algebra.graph @once [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>,
     %u: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>, !algebra.tensor<[M, N], f16>, !algebra.tensor<[M, K], f16>) {
  %n = algebra.silu %x
  %a = algebra.matmul %n, %w
  %b = algebra.matmul %n, %u
  algebra.return %a, %b, %n
}

// CHECK-LABEL: algebra.graph @once [M, K, N]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>, %u: !algebra.tensor<[K, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f16>, !algebra.tensor<[M, N], f16>, !algebra.tensor<[M, K], f16>) {
// CHECK-NEXT:    %n = algebra.silu %x : !algebra.tensor<[M, K], f32>
// CHECK-NEXT:    %n_1 = algebra.cast %n to f16 : !algebra.tensor<[M, K], f16>
// CHECK-NEXT:    %a = algebra.matmul %n_1, %w : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %a_1 = algebra.cast %a to f16 : !algebra.tensor<[M, N], f16>
// CHECK-NEXT:    %b = algebra.matmul %n_1, %u : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %b_1 = algebra.cast %b to f16 : !algebra.tensor<[M, N], f16>
// CHECK-NEXT:    algebra.return %a_1, %b_1, %n_1
// CHECK-NEXT:  }

// -----

// With both operands computed the inputs decide.
algebra.graph @computed [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>, %scale: !algebra.tensor<[], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %a = algebra.relu %x
  %b = algebra.mul %w, %scale
  %o = algebra.matmul %a, %b
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @computed [M, K, N]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>, %scale: !algebra.tensor<[], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %a = algebra.relu %x : !algebra.tensor<[M, K], f32>
// CHECK-NEXT:    %a_1 = algebra.cast %a to f16 : !algebra.tensor<[M, K], f16>
// CHECK-NEXT:    %b = algebra.mul %w, %scale : !algebra.tensor<[K, N], f32>
// CHECK-NEXT:    %b_1 = algebra.cast %b to f16 : !algebra.tensor<[K, N], f16>
// CHECK-NEXT:    %o = algebra.matmul %a_1, %b_1 : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    algebra.return %o
// CHECK-NEXT:  }

// -----

// A result is rounded in front of the views through which it leaves, so in the kernel.
algebra.graph @view [H, G, M, D]
    (%q: !algebra.tensor<[H, G, M, D], f16>) -> (!algebra.tensor<[H * G, M, D], f16>) {
  %e = algebra.exp %q
  %o = algebra.reshape %e to [H * G, M, D]
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @view [H, G, M, D]
// CHECK-NEXT:      (%q: !algebra.tensor<[H, G, M, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[G * H, M, D], f16>) {
// CHECK-NEXT:    %e = algebra.exp %q : !algebra.tensor<[H, G, M, D], f32>
// CHECK-NEXT:    %e_1 = algebra.cast %e to f16 : !algebra.tensor<[H, G, M, D], f16>
// CHECK-NEXT:    %o = algebra.reshape %e_1 to [G * H, M, D] : !algebra.tensor<[G * H, M, D], f16>
// CHECK-NEXT:    algebra.return %o
// CHECK-NEXT:  }

// -----

// f32 inputs stay what they are, and so does a product that may use tf32.
algebra.graph @wide [M, K, N]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f32>, %h: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f32>, !algebra.tensor<[M, N], f32>) {
  %e = algebra.exp %x
  %o = algebra.matmul %e, %w
  %t = algebra.matmul %e, %w precision tf32
  algebra.return %o, %t
}

// CHECK-LABEL: algebra.graph @wide [M, K, N]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f32>, %h: !algebra.tensor<[K, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>, !algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %e = algebra.exp %x : !algebra.tensor<[M, K], f32>
// CHECK-NEXT:    %o = algebra.matmul %e, %w : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %t = algebra.matmul %e, %w precision tf32 : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    algebra.return %o, %t
// CHECK-NEXT:  }

// -----

// A narrow input is the type of a matmul also where the other operand is a wide input.
algebra.graph @mixed [M, K, N]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @mixed [M, K, N]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %x_1 = algebra.cast %x to f16 : !algebra.tensor<[M, K], f16>
// CHECK-NEXT:    %o = algebra.matmul %x_1, %w : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    algebra.return %o
// CHECK-NEXT:  }

// -----

// Views of inputs are inputs: they have their types already.
algebra.graph @views [H, G, M, K]
    (%x: !algebra.tensor<[H * G, M, K], f16>, %b: !algebra.tensor<[M], bf16>)
    -> (!algebra.tensor<[H, G, M, M], f32>) {
  %a = algebra.reshape %x to [H, G, M, K]
  %t = algebra.transpose %a permutation [0, 1, 3, 2]
  %o = algebra.matmul %a, %t
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @views [H, G, M, K]
// CHECK-NEXT:      (%x: !algebra.tensor<[G * H, M, K], f16>, %b: !algebra.tensor<[M], bf16>)
// CHECK-NEXT:      -> (!algebra.tensor<[H, G, M, M], f32>) {
// CHECK-NEXT:    %a = algebra.reshape %x to [H, G, M, K] : !algebra.tensor<[H, G, M, K], f16>
// CHECK-NEXT:    %t = algebra.transpose %a permutation [0, 1, 3, 2] : !algebra.tensor<[H, G, K, M], f16>
// CHECK-NEXT:    %o = algebra.matmul %a, %t : !algebra.tensor<[H, G, M, M], f32>
// CHECK-NEXT:    algebra.return %o
// CHECK-NEXT:  }
