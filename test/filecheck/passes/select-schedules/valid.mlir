// RUN: cleave-opt %s -p 'select-schedules{top-k=2 stats=true}' --split-input-file | filecheck %s

// The original stays; of a matmul of 4096, a persistent kernel in tiles of 128 by 256 is
// the first.
algebra.graph @matmul [M, K, N] where [M = 4096, K = 4096, N = 4096]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @matmul [M, K, N]
// CHECK:           attributes {schedules = {evaluated = {{[0-9]+}} : i64, "matmul rows" = {{[0-9]+}} : i64
// CHECK-LABEL: itgraph.plan @matmul_plan0 [M, K, N, BM, BN, BK] where [M = 4096, K = 4096, N = 4096, BM = 128, BN = 256, BK = 64]
// CHECK:           attributes {equals = @matmul, rank = 0 : i64, predicted_us = {{[^,]+}} : f64, schedule = ["tile M=128 N=256, reduce K=64, persistent, 256 threads, 4 stages, warps along rows, panel 16"]} {
// CHECK:             attributes {form = "persistent", threads = 256 : i64, stages = 4 : i64, swizzle = 16 : i64, warps = "rows"} {
// CHECK-LABEL: itgraph.plan @matmul_plan1
// CHECK:           attributes {equals = @matmul, rank = 1 : i64

// -----

// Candidates make way for the plans of what they equal, whichever is the fastest:
// without the division inside, attention goes through its keys once.
algebra.graph @attention [H, M, L, D] where [H = 8, M = 1024, L = 1024, D = 64]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>, %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
algebra.graph @attention_1 [H, M, L, D] where [H = 8, M = 1024, L = 1024, D = 64]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>, %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>)
    attributes {equals = @attention} {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
algebra.graph @attention_2 [H, M, L, D] where [H = 8, M = 1024, L = 1024, D = 64]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>, %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>)
    attributes {equals = @attention} {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @attention [H, M, L, D]
// CHECK-NOT:   algebra.graph
// CHECK-LABEL: itgraph.plan @attention_plan0
// CHECK:           attributes {equals = @attention, rank = 0 : i64
// CHECK:         itgraph.loop
// CHECK:           itgraph.next
// CHECK-NOT:     itgraph.loop
// CHECK:         itgraph.return
// CHECK-LABEL: itgraph.plan @attention_plan1
// CHECK-NOT:   itgraph.plan

// -----

// Pieces become the kernels of one plan.
algebra.graph @sum_split [M, K, s] where [M = 16, K = 65536, s | K, s = 64]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[s, M, 1], f32>)
    attributes {kernel = {of = "sum", number = 0 : i64, count = 2 : i64, symbols = ["M", "K", "s"],
                          operands = ["input 0"], results = ["passed on"]}} {
  %0 = algebra.split %x dim 1 count s
  %1 = algebra.reduce_sum %0 dim 2 : !algebra.tensor<[s, M, 1], f32>
  algebra.return %1
}
algebra.graph @sum_combine [M, K, s] where [M = 16, K = 65536, s | K, s = 64]
    (%0: !algebra.tensor<[s, M, 1], f32>) -> (!algebra.tensor<[M, 1], f32>)
    attributes {kernel = {of = "sum", number = 1 : i64, count = 2 : i64, symbols = ["M", "K", "s"],
                          operands = ["kernel 0 result 0"], results = ["output 0"]}} {
  %1 = algebra.reduce_sum %0 dim 0 : !algebra.tensor<[1, M, 1], f32>
  %2 = algebra.reshape %1 to [M, 1] : !algebra.tensor<[M, 1], f32>
  algebra.return %2
}

// CHECK-LABEL: itgraph.plan @sum_plan0
// CHECK:           attributes {equals = @sum, rank = 0 : i64, predicted_us = {{[^,]+}} : f64, schedule = ["tile s=1 {{[^"]+}}", "{{[^"]+}}"]} {
// CHECK:         itgraph.kernel (i_s = 0 to s
// CHECK:         itgraph.kernel
// CHECK:         itgraph.return
