// RUN: not cleave-opt %s -p 'schedule-blocks{tile="M=64"},plan-memory' 2>&1 | filecheck %s
// RUN: not cleave-opt %s -p 'plan-memory{specialization=two-loops}' 2>&1 | filecheck %s --check-prefix=OPTION

// CHECK: error: pass 'plan-memory': 'algebra.matmul' op: operand 0 is !algebra.tensor<[BM, K], f32>, but tensor cores multiply f16 and bf16, and f32 rounded to tf32: give it as one of these, or say `precision tf32` of f32 operands
// OPTION: error: pass 'plan-memory': option specialization is 'two-loops'; it takes single-loop or role-based or none
algebra.graph @wide [M, K, N]
    (%x: !algebra.tensor<[M, K], f32>, %w: !algebra.tensor<[K, N], f32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %o = algebra.matmul %x, %w
  algebra.return %o
}
