// RUN: cleave-opt %s -p symbolize --split-input-file --verify-diagnostics | filecheck %s

// CHECK: pass 'symbolize': 'algebra.reshape' op: dims [0, 1] become dims [0, 1], which neither merges dims nor divides one
algebra.graph @regrouped
    (%x: !algebra.tensor<[6, 4], f32>) -> (!algebra.tensor<[4, 6], f32>) {
  %y = algebra.reshape %x to [4, 6]
  algebra.return %y
}

// -----

// CHECK: pass 'symbolize': 12 is regarded as a product of 2 dims and as a product of 3 dims
algebra.graph @twice
    (%x: !algebra.tensor<[12], f32>)
    -> (!algebra.tensor<[3, 4], f32>, !algebra.tensor<[3, 2, 2], f32>) {
  %y = algebra.reshape %x to [3, 4]
  %z = algebra.reshape %x to [3, 2, 2]
  algebra.return %y, %z
}
