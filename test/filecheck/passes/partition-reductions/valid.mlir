// RUN: cleave-opt %s -p 'partition-reductions' --split-input-file | filecheck %s

// A row statistic beside a matmul instead of inside of it. What is kept is as far along
// as it can be for its bytes: the root, not the sum.
algebra.graph @scaled [M, K, N] where [M = 256, K = 256, N = 256]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>)
    attributes {equals = @norm} {
  %squares = algebra.square %x
  %sum = algebra.reduce_sum %squares dim 1
  %rms = algebra.sqrt %sum
  %y = algebra.matmul %x, %w
  %o = algebra.div %y, %rms
  algebra.return %o
}

// CHECK:      algebra.graph @scaled [M, K, N]
// CHECK:      algebra.graph @scaled_cut1_0 [M, K, N] where [M = 256, K = 256, N = 256]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, K], f16>)
// CHECK-NEXT:     -> (!algebra.tensor<[M, 1], f32>)
// CHECK-NEXT:     attributes {kernel = {of = "scaled_cut1", number = 0 : i64, count = 2 : i64, symbols = ["M", "K", "N"], operands = ["input 0"], results = ["passed on"], cuts = @scaled, traffic = 526336 : i64, equals = @norm}} {
// CHECK-NEXT:   %squares = algebra.square %x : !algebra.tensor<[M, K], f32>
// CHECK-NEXT:   %sum = algebra.reduce_sum %squares dim 1 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   %rms = algebra.sqrt %sum : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:   algebra.return %rms
// CHECK-NEXT: }
// CHECK-NEXT: algebra.graph @scaled_cut1_1 [M, K, N]
// CHECK-NEXT:     (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>, %rms: !algebra.tensor<[M, 1], f32>)
// CHECK-NEXT:     -> (!algebra.tensor<[M, N], f16>)
// CHECK-NEXT:     attributes {kernel = {of = "scaled_cut1", number = 1 : i64, count = 2 : i64, symbols = ["M", "K", "N"], operands = ["input 0", "input 1", "kernel 0 result 0"], results = ["output 0"]
// CHECK-NEXT:   %y = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   %o = algebra.div %y, %rms : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:   algebra.return %o
// CHECK-NEXT: }

// The other way about: the product is kept, and the statistic computed where it is used.
// CHECK-NEXT: algebra.graph @scaled_cut2_0
// CHECK:        algebra.return %y
// CHECK:      algebra.graph @scaled_cut2_1
// CHECK:        %rms = algebra.sqrt %sum
// CHECK-NEXT:   %o = algebra.div %y, %rms
// CHECK-NOT:  algebra.graph @scaled_cut3

// The matmul alone, and each of the others.
// CHECK:      algebra.graph @scaled_unfused_0
// CHECK:          cuts = @scaled, traffic = 1050624 : i64, unfused, equals = @norm}}
// CHECK:        algebra.return %rms
// CHECK:      algebra.graph @scaled_unfused_1
// CHECK:        %y = algebra.matmul
// CHECK-NEXT:   algebra.return %y
// CHECK:      algebra.graph @scaled_unfused_2
// CHECK:        %o = algebra.div
// CHECK-NEXT:   algebra.return %o

// -----

// What is an operand of matmuls only is passed on in the type that they round it to.
algebra.graph @mlp [M, K, N, O] where [M = 64, K = 4096, N = 256, O = 4096]
    (%x: !algebra.tensor<[M, K], bf16>, %w1: !algebra.tensor<[K, N], bf16>,
     %w2: !algebra.tensor<[K, N], bf16>, %w3: !algebra.tensor<[N, O], bf16>)
    -> (!algebra.tensor<[M, O], bf16>) {
  %gate = algebra.matmul %x, %w1
  %up = algebra.matmul %x, %w2
  %act = algebra.silu %gate
  %h = algebra.mul %act, %up
  %o = algebra.matmul %h, %w3
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @mlp_cut1_0
// CHECK-NEXT:      (%x: !algebra.tensor<[M, K], bf16>, %w1: !algebra.tensor<[K, N], bf16>, %w2: !algebra.tensor<[K, N], bf16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], bf16>)
// CHECK:         %h = algebra.mul %act, %up : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    algebra.return %h
// CHECK:       algebra.graph @mlp_cut1_1
// CHECK-NEXT:      (%w3: !algebra.tensor<[N, O], bf16>, %h: !algebra.tensor<[M, N], bf16>)
// CHECK:         operands = ["input 3", "kernel 0 result 0"]
// CHECK-NEXT:    %o = algebra.matmul %h, %w3 : !algebra.tensor<[M, O], f32>

// -----

// Two passes over rows: statistics first, and then what follows from them with tiles of
// any size. The exponentials are computed in both.
algebra.graph @softmax [M, L] where [M = 1024, L = 8192]
    (%x: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, L], f16>) {
  %m = algebra.reduce_max %x dim 1
  %d = algebra.sub %x, %m
  %e = algebra.exp %d
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %e, %l
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @softmax_cut2_0
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, 1], f32>, !algebra.tensor<[M, 1], f32>)
// CHECK:         algebra.return %m, %l
// CHECK:       algebra.graph @softmax_cut2_1
// CHECK-NEXT:      (%x: !algebra.tensor<[M, L], f16>, %m: !algebra.tensor<[M, 1], f32>, %l: !algebra.tensor<[M, 1], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, L], f16>)
// CHECK:         %d = algebra.sub %x, %m
// CHECK-NEXT:    %e = algebra.exp %d
// CHECK-NEXT:    %o = algebra.div %e, %l
// CHECK-NEXT:    algebra.return %o
// One kernel can compute an operator group as this one.
// CHECK-NOT:   unfused

// -----

// Heads are joined between kernels, by a view that costs nothing.
algebra.graph @projection [H, M, D, N] where [H = 8, M = 64, D = 64, N = 512]
    (%p: !algebra.tensor<[H, M, M], f16>, %v: !algebra.tensor<[H, M, D], f16>,
     %w: !algebra.tensor<[H * D, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %a = algebra.matmul %p, %v
  %rows = algebra.transpose %a permutation [1, 0, 2]
  %joined = algebra.reshape %rows to [M, H * D]
  %o = algebra.matmul %joined, %w
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @projection_cut1_0
// CHECK:           -> (!algebra.tensor<[M, H, D], f16>)
// CHECK:         algebra.return %rows
// CHECK:       algebra.graph @projection_cut1_1
// CHECK-NEXT:      (%w: !algebra.tensor<[D * H, N], f16>, %rows: !algebra.tensor<[M, H, D], f16>)
// CHECK:         %joined = algebra.reshape %rows to [M, D * H]
// CHECK-NEXT:    %o = algebra.matmul %joined, %w

// -----

// Rows that no threadblock holds: every reduction is a kernel then.
algebra.graph @long [M, L] where [M = 16, L = 1048576]
    (%x: !algebra.tensor<[M, L], f32>) -> (!algebra.tensor<[M, L], f32>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 1
  %n = algebra.div %e, %l
  %m = algebra.reduce_max %n dim 1
  %o = algebra.sub %n, %m
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @long_unfused_0
// CHECK:         algebra.return %l
// CHECK:       algebra.graph @long_unfused_1
// CHECK:         algebra.return %m
// CHECK:       algebra.graph @long_unfused_2
// CHECK:         algebra.return %o

// -----

// Dims of a computed value are regrouped in memory.
algebra.graph @regroup [A, B, K] where [A = 64, B = 32, K = 128]
    (%x: !algebra.tensor<[A, B, K], f16>, %y: !algebra.tensor<[A * B, 1], f16>)
    -> (!algebra.tensor<[A * B, 1], f16>) {
  %t = algebra.tanh %x
  %r = algebra.reshape %t to [A * B, K]
  %z = algebra.mul %r, %y
  %o = algebra.reduce_sum %z dim 1
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @regroup_cut1_0
// CHECK:           -> (!algebra.tensor<[A, B, K], f32>)
// CHECK:         algebra.return %t
// CHECK:       algebra.graph @regroup_cut1_1
// CHECK:         %r = algebra.reshape %t to [A * B, K]

// -----

// Nothing to cut, splits, and pieces: all left alone.
// CHECK-LABEL: algebra.graph @alone
algebra.graph @alone [M, K] where [M = 8, K = 8]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %0 = algebra.reduce_sum %x dim 1
  algebra.return %0
}
// CHECK:     algebra.graph @split
algebra.graph @split [M, K, s] where [M = 8, K = 8, s = 2]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[1, M, 1], f32>) {
  %0 = algebra.split %x dim 1 count s
  %1 = algebra.reduce_sum %0 dim 2
  %2 = algebra.reduce_sum %1 dim 0
  algebra.return %2
}
// CHECK:     algebra.graph @softmax_0
algebra.graph @softmax_0 [M, L] where [M = 8, L = 8]
    (%x: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, 1], f32>)
    attributes {kernel = {of = "softmax", number = 0 : i64, count = 2 : i64, symbols = ["M", "L"], operands = ["input 0"], results = ["passed on"]}} {
  %m = algebra.reduce_max %x dim 1
  %d = algebra.sub %x, %m
  %e = algebra.exp %d
  %l = algebra.reduce_sum %e dim 1
  algebra.return %l
}
// CHECK-NOT: algebra.graph
