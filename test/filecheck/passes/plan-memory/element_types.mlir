// RUN: cleave-opt %s -p 'schedule-blocks{tile="M=64"},plan-memory' --split-input-file --verify-diagnostics | filecheck %s
// RUN: cleave-opt %s -p 'select-schedules{top-k=1}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=SELECT

// CHECK: pass 'plan-memory': 'algebra.add' op: operand 1 is !algebra.tensor<[BM, K], f64>, but kernels compute f32: cast it to f32
// SELECT: pass 'select-schedules': @wide has no legal schedule: 'algebra.add' op: operand 1 is !algebra.tensor<[{{.*}}], f64>, but kernels compute f32: cast it to f32
algebra.graph @wide [M, K] where [M = 128, K = 64]
    (%x: !algebra.tensor<[M, K], f32>, %y: !algebra.tensor<[M, K], f64>)
    -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.add %x, %y
  algebra.return %o
}

// -----

// CHECK: pass 'plan-memory': 'algebra.cast' op: yields !algebra.tensor<[BM, K], f64>, but kernels compute f32
algebra.graph @widened [M, K] where [M = 128, K = 64]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f64>) {
  %y = algebra.exp %x
  %o = algebra.cast %y to f64
  algebra.return %o
}

// -----

// CHECK: pass 'plan-memory': 'algebra.cast' op: yields !algebra.tensor<[BM, K], f16> from i64, but kernels convert i64 to no type of 16 bits
algebra.graph @long [M, K] where [M = 128, K = 64]
    (%x: !algebra.tensor<[M, K], i64>) -> (!algebra.tensor<[M, K], f16>) {
  %y = algebra.cast %x to f32
  %o = algebra.cast %y to f16
  algebra.return %o
}

// -----

// What is rounded because the graph says so is no surprise, nor are masks and indices.
// CHECK: itgraph.plan @cast
algebra.graph @cast [M, K] where [M = 128, K = 64]
    (%x: !algebra.tensor<[M, K], f64>, %mask: !algebra.tensor<[M, K], i1>,
     %i: !algebra.tensor<[M, K], i32>) -> (!algebra.tensor<[M, K], f32>) {
  %a = algebra.cast %x to f32
  %b = algebra.cast %i to f32
  %o = algebra.select %mask, %a, %b
  algebra.return %o
}

// -----

// Nor does a search round the operands of a matmul to tf32 where nobody said so.
// CHECK: pass 'plan-memory': 'algebra.matmul' op: operand 0 is !algebra.tensor<[BM, K], f32>, but tensor cores multiply f16 and bf16
// SELECT: pass 'select-schedules': @matmul has no legal schedule: 'algebra.matmul' op: operand 0 is !algebra.tensor<[{{.*}}], f32>, but tensor cores multiply f16 and bf16
algebra.graph @matmul [M, K, N] where [M = 128, K = 64, N = 64]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}
