// RUN: cleave-opt %s -p 'compose-plans' --split-input-file --verify-diagnostics | filecheck %s

// CHECK: pass 'compose-plans': @norm has 2 kernels, but there are: 1
itgraph.plan @norm_1 [M] (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 1 : i64, count = 2 : i64, symbols = ["M"], operands = ["input 0"], results = ["output 0"]}} {
  itgraph.return %x
}

// -----

// CHECK: pass 'compose-plans': 'itgraph.plan' op: {of = "norm", number = 1 : i64} says of no kernel: 'count'
itgraph.plan @norm_1 [M] (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 1 : i64}} {
  itgraph.return %x
}

// -----

// CHECK: pass 'compose-plans': @norm_0 takes input 0 as !algebra.tensor<[M], f32>, but it is !algebra.tensor<[M], f16>
itgraph.plan @norm_0 [M] (%x: !algebra.tensor<[M], f16>, %y: !algebra.tensor<[M], f32>)
    -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 0 : i64, count = 1 : i64, symbols = ["M"], operands = ["input 0", "input 0"], results = ["output 0"]}} {
  itgraph.return %x
}

// -----

// CHECK: pass 'compose-plans': the kernels of @norm: 'itgraph.plan' op: @norm: M = 4 contradicts M = 8
itgraph.plan @norm_0 [M] where [M = 8]
    (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 0 : i64, count = 2 : i64, symbols = ["M"], operands = ["input 0"], results = ["passed on"]}} {
  itgraph.return %x
}
itgraph.plan @norm_1 [M] where [M = 4]
    (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 1 : i64, count = 2 : i64, symbols = ["M"], operands = ["kernel 0 result 0"], results = ["output 0"]}} {
  itgraph.return %x
}

// -----

// CHECK: pass 'compose-plans': @norm_1 is of @norm, which has 3 kernels, not of @norm, which has 2
itgraph.plan @norm_0 [M] (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 0 : i64, count = 2 : i64, symbols = ["M"], operands = ["input 0"], results = ["passed on"]}} {
  itgraph.return %x
}
itgraph.plan @norm_1 [M] (%x: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M], f16>)
    attributes {kernel = {of = "norm", number = 1 : i64, count = 3 : i64, symbols = ["M"], operands = ["kernel 0 result 0"], results = ["output 0"]}} {
  itgraph.return %x
}
