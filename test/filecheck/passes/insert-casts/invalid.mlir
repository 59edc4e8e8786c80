// RUN: not cleave-opt %s -p insert-casts 2>&1 | filecheck %s

// CHECK: error: pass 'insert-casts': 'algebra.matmul' op: both operands are computed and the inputs of @ambiguous are f16 and bf16; cast the operands to one of them
algebra.graph @ambiguous [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], bf16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %a = algebra.relu %x
  %b = algebra.relu %w
  %o = algebra.matmul %a, %b
  algebra.return %o
}
