// RUN: cleave-opt %s -p superoptimize --split-input-file --verify-diagnostics | filecheck %s
// RUN: not cleave-opt %s -p 'superoptimize{split=outputs}' 2>&1 | filecheck %s --check-prefix=OPTION

// OPTION: error: pass 'superoptimize': option split is 'outputs'; it takes none or inputs

// CHECK: pass 'superoptimize': graph @concrete: dim 1 of input x is the number 64; run symbolize first
algebra.graph @concrete [M]
    (%x: !algebra.tensor<[M, 64], f32>) -> (!algebra.tensor<[M, 64], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: pass 'superoptimize': graph @zero: division by zero
algebra.graph @zero [M]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %zero = algebra.sub %x, %x
  %o = algebra.div %x, %zero
  algebra.return %o
}

// -----

// CHECK: pass 'superoptimize': graph @regrouped: 'algebra.reshape' op: dims [0, 1] become dims [0, 1], which neither merges dims nor divides one
algebra.graph @regrouped [A, B]
    (%x: !algebra.tensor<[2 * A, B], f32>) -> (!algebra.tensor<[A, 2 * B], f32>) {
  %o = algebra.reshape %x to [A, 2 * B]
  algebra.return %o
}

// -----

// CHECK: M = 4
algebra.graph @conflict [M] where [M = 4, M = 8]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}
