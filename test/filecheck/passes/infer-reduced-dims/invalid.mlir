// RUN: cleave-opt %s -p infer-reduced-dims --split-input-file --verify-diagnostics | filecheck %s

// CHECK: pass 'infer-reduced-dims': graph @claimed: dim 0 of input x is not reduced, but the annotation says that it is
algebra.graph @claimed [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>)
    attributes {reduced_dims = [array<i64: 0, 1>]} {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}

// -----

// CHECK: pass 'infer-reduced-dims': graph @missing: dim 1 of input x is reduced, but the annotation says that it is not
algebra.graph @missing [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>)
    attributes {reduced_dims = [array<i64>]} {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}

// -----

// CHECK: pass 'infer-reduced-dims': graph @malformed: reduced_dims must be an array with an array<i64: ...> for each input, 1 in all
algebra.graph @malformed [M, K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>)
    attributes {reduced_dims = [1, 2]} {
  %y = algebra.reduce_sum %x dim 1
  algebra.return %y
}
