// RUN: cleave-opt %examples/matmul.mlir -p 'insert-casts,schedule-blocks{tile="M=128 N=256"},schedule-reductions{tile="K=64"},plan-memory{form=persistent threads=256 stages=4 swizzle=8}' -t tilelang | golden %S/persistent_matmul.py
// RUN: cleave-opt %examples/swiglu.mlir -p 'insert-casts,schedule-blocks{tile="M=128 N=128"},schedule-reductions{tile="K=64"},plan-memory{form=persistent threads=256 stages=4 swizzle=8}' -t tilelang | golden %S/persistent_swiglu.py
// RUN: cleave-opt %examples/rmsnorm_matmul_scaled.mlir -p 'insert-casts,schedule-blocks{tile="M=128 N=256"},schedule-reductions{tile="K=64"},plan-memory{form=persistent threads=256 stages=3 swizzle=8}' -t tilelang | golden %S/persistent_rmsnorm_matmul_scaled.py
// RUN: cleave-opt %s -p 'insert-casts,schedule-blocks{tile="B=1 M=128 N=256"},schedule-reductions{tile="K=64"},plan-memory{form=persistent threads=256 stages=3 swizzle=8}' -t tilelang | golden %S/persistent_epilogue.py

// A batch of rows that are scaled, shifted by a vector and a matrix, and stored twice. The
// tiles divide neither dim, so the last tiles of each row and column are clipped.
algebra.graph @epilogue [B, M, K, N] where [B = 3, M = 1000, K = 344, N = 1000]
    (%x: !algebra.tensor<[B, M, K], f16>, %w: !algebra.tensor<[B, N, K], f16>,
     %scale: !algebra.tensor<[B, M, 1], f32>, %bias: !algebra.tensor<[1, N], f16>,
     %residual: !algebra.tensor<[B, M, N], f16>)
    -> (!algebra.tensor<[B, M, N], f16>, !algebra.tensor<[B, M, N], f32>) {
  %y = algebra.matmul %x, %w transpose_rhs
  %scaled = algebra.mul %y, %scale
  %shifted = algebra.add %scaled, %bias
  %o = algebra.add %shifted, %residual
  algebra.return %o, %shifted
}
