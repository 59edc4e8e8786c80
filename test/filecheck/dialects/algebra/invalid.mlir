// RUN: cleave-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// One rule a chunk, and one CHECK a chunk: a chunk that is accepted fails its CHECK.

// Graphs.

// CHECK: 'algebra.graph' op: @g declares a symbol twice: M, K, M
algebra.graph @g [M, K, M] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g: M = 8 contradicts M = 4
algebra.graph @g [M, K] where [M = 4, M = 8] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g: M = 0
algebra.graph @g [M, K] where [M = 0] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g: fact `s | K` uses undeclared symbol 's' (declared: M, K)
algebra.graph @g [M, K] where [s | K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g: type !algebra.tensor<[M, N], f16> uses undeclared symbol 'N' (declared: M, K)
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g: type !algebra.tensor<[M], f32> uses undeclared symbol 'M' (declared: none)
algebra.graph @g  (%x: !algebra.tensor<[4], f16>) -> (!algebra.tensor<[M], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.constant' op: type !algebra.tensor<[N], f32> uses undeclared symbol 'N' (declared: M, K)
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  %c = algebra.constant 1.0 : !algebra.tensor<[N], f32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.constant' op: parameter 'value' uses undeclared symbol 'N' (declared: M, K)
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  %c = algebra.constant N : !algebra.tensor<[], f32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: holds 'arith.constant', which is no algebra operator
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  %c = arith.constant 1 : i32
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g does not end with algebra.return
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
}

// -----

// CHECK: 'algebra.graph' op: @g has no result, so it computes nothing
"algebra.graph"() <{sym_name = "g", symbols = [], where = [], outputs = []}> ({
  "algebra.return"() : () -> ()
}) : () -> ()

// -----

// CHECK: 'algebra.graph' op: @g declares 1 result but returns 2
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o, %x
}

// -----

// CHECK: 'algebra.graph' op: @g declares result 0 as !algebra.tensor<[M, 1], f32> but returns !algebra.tensor<[M, K], f32>
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, 1], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g does not end with algebra.return
algebra.graph @g (%x: !algebra.tensor<[4], f32>) -> (!algebra.tensor<[4], f32>) {
}

// -----

// A float result is rounded; any other is of the declared type.

// CHECK: 'algebra.graph' op: @g declares result 0 as !algebra.tensor<[M, K], f32> but returns !algebra.tensor<[M, K], i1>
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.causal diagonal 0 : !algebra.tensor<[M, K], i1>
  algebra.return %o
}

// -----

// CHECK: a graph's results are algebra tensors
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (f32) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.return' expects parent op 'algebra.graph'
func.func @f(%x: !algebra.tensor<[4], f32>) {
  algebra.return %x
}

// -----

// Values.

// CHECK: %p is not defined here
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.add %x, %p
  %p = algebra.exp %o
  algebra.return %o
}

// -----

// CHECK: %x is f32, not an algebra tensor
func.func @f(%x: f32) {
  %o = algebra.exp %x
}

// -----

// CHECK: 'algebra.exp' op: yields !algebra.tensor<[M, K], f32>, not !algebra.tensor<[M, K], f16>
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x : !algebra.tensor<[M, K], f16>
  algebra.return %o
}

// -----

// Tensors.

// CHECK: element type i8 is not one of f16, bf16, f32, f64, i1, i32, i64
algebra.graph @g [M, K] (%x: !algebra.tensor<[M], i8>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: dim 1 of a tensor is 0, but dims are at least 1
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, 0], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// Matmul.

// CHECK: 'algebra.matmul' op: contracts lhs dim 1, which is K, with rhs dim 0, which is M
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.matmul' op: contracts lhs dim 0, which is M, with rhs dim 1, which is K
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %x transpose_lhs transpose_rhs
  algebra.return %o
}

// -----

// CHECK: 'algebra.matmul' op: rhs has rank 1, but a matrix has at least 2
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %y
  algebra.return %o
}

// -----

// CHECK: 'algebra.matmul' op: batch dim 0 is M in lhs but K in rhs
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, 2, 3], f16>, %y: !algebra.tensor<[K, 3, 4], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %y
  algebra.return %o
}

// -----

// CHECK: 'algebra.matmul' op: lhs is f16 but rhs is bf16
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[M, K], bf16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %y transpose_rhs
  algebra.return %o
}

// -----

// CHECK: 'algebra.matmul' op: operand 1 has elements of type i32, but this operator computes with floats
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[M, K], i32>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %y transpose_rhs
  algebra.return %o
}

// -----

// CHECK: 'algebra.matmul' op: precision half is not known (there is: tf32)
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.matmul %x, %x transpose_rhs precision half
  algebra.return %o
}

// -----

// Elementwise operators.

// CHECK: 'algebra.add' op: operand 1 has M where the other operands have K (dim 1 of the result)
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[M], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.add %x, %y
  algebra.return %o
}

// -----

// CHECK: 'algebra.exp' op: operand 0 has elements of type i1, but this operator computes with floats
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], i1>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.select' op: operand 0 is the mask and must be i1, not f16
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.select %x, %x, %x
  algebra.return %o
}

// -----

// CHECK: 'algebra.select' op: operand 2 has elements of type i1, but this operator computes with floats
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[M, K], i1>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.select %y, %x, %y
  algebra.return %o
}

// -----

// CHECK: 'algebra.cast' op: from f16 to i32 would truncate
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.cast %x to i32
  algebra.return %o
}

// -----

// CHECK: expected 'to'
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.cast %x
  algebra.return %o
}

// -----

// Reductions.

// CHECK: 'algebra.reduce_sum' op: dim 2 is out of range for an operand of rank 2
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.reduce_sum %x dim 2
  algebra.return %o
}

// -----

// CHECK: 'algebra.reference' op: dim -1 is out of range for an operand of rank 2
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.reference %x dim -1
  algebra.return %o
}

// -----

// Generators.

// CHECK: 'algebra.constant' op: has no operands, so write its type
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.constant 1.0
  algebra.return %o
}

// -----

// CHECK: the number 1e-12 has no point before its exponent: write 1.0e-12
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.constant -1e-12 : !algebra.tensor<[], f32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.constant' op: 1.5 is no value of i32
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.constant 1.5 : !algebra.tensor<[], i32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.iota' op: positions are i32, not f32
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.iota dim 0 : !algebra.tensor<[M], f32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.iota' op: dim 1 is out of range for !algebra.tensor<[M], i32>
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.iota dim 1 : !algebra.tensor<[M], i32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.causal' op: a mask is i1, not f32
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.causal diagonal 0 : !algebra.tensor<[M, K], f32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.causal' op: needs a row dim and a column dim, but the type is !algebra.tensor<[M], i1>
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.causal diagonal 0 : !algebra.tensor<[M], i1>
  algebra.return %o
}

// -----

// CHECK: 'algebra.window' op: a window of size 0 sees nothing; it is at least 1
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.window diagonal 0 size 0 : !algebra.tensor<[M, K], i1>
  algebra.return %o
}

// -----

// Views.

// CHECK: 'algebra.split' op: dim 2 is out of range for an operand of rank 2
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.split %x dim 2 count 4
  algebra.return %o
}

// -----

// CHECK: 'algebra.split' op: count is 0, but there is at least 1 part
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.split %x dim 1 count 0
  algebra.return %o
}

// -----

// CHECK: 'algebra.split' op: count 3 does not divide dim 1, which is 64
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, 64], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.split %x dim 1 count 3
  algebra.return %o
}

// -----

// CHECK: 'algebra.split' op: count s is not known to divide dim 1, which is K (here s and 64); declare `s | K`
algebra.graph @g [M, K, s] where [K = 64] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.split %x dim 1 count s
  algebra.return %o
}

// -----

// A fact that its other facts contradict.

// CHECK: 'algebra.split' op: chunk is 0, but a part holds at least 1 position
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.split %x dim 1 count 4 chunk 0
  algebra.return %o
}

// -----

// CHECK: 'algebra.split' op: s parts of C are not known to hold dim 1, which is K (here s * C and 103); declare `s * C >= K`
algebra.graph @g [M, K, s, C] where [K = 103] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[s, M, C], f16>) {
  %o = algebra.split %x dim 1 count s chunk C
  algebra.return %o
}

// -----

// CHECK: 'algebra.split' op: 4 parts of 25 are not known to hold dim 1, which is K (here 100 and 103); declare `100 >= K`
algebra.graph @g [M, K] where [K = 103] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[4, M, 25], f16>) {
  %o = algebra.split %x dim 1 count 4 chunk 25
  algebra.return %o
}

// -----

// CHECK: 'algebra.within' op: dim 3 is out of range for !algebra.tensor<[s, 1, C], i1>
algebra.graph @g [K, s, C] () -> (!algebra.tensor<[s, 1, C], i1>) {
  %o = algebra.within part 0 dim 3 chunk C limit K : !algebra.tensor<[s, 1, C], i1>
  algebra.return %o
}

// -----

// CHECK: 'algebra.within' op: dim 2 is both the parts and the positions
algebra.graph @g [K, s, C] () -> (!algebra.tensor<[s, 1, C], i1>) {
  %o = algebra.within part 2 dim 2 chunk C limit K : !algebra.tensor<[s, 1, C], i1>
  algebra.return %o
}

// -----

// CHECK: 'algebra.within' op: a mask is i1, not f32
algebra.graph @g [K, s, C] () -> (!algebra.tensor<[s, 1, C], f32>) {
  %o = algebra.within part 0 dim 2 chunk C limit K : !algebra.tensor<[s, 1, C], f32>
  algebra.return %o
}

// -----

// CHECK: 'algebra.graph' op: @g: s | K contradicts K = 64 and s = 3
algebra.graph @g [M, K, s] where [s | K, K = 64, s = 3] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.split %x dim 1 count s
  algebra.return %o
}

// -----

// CHECK: 'algebra.reshape' op: K * M elements do not become 4 * M
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.reshape %x to [M, 4]
  algebra.return %o
}

// -----

// CHECK: 'algebra.transpose' op: [0, 0] is no order of 2 dims
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.transpose %x permutation [0, 0]
  algebra.return %o
}

// -----

// What is no operator.

// CHECK: there is no operation 'algebra.exq': did you mean algebra.exp or algebra.exp2 or algebra.neg?
algebra.graph @g [M, K] (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[M, K], f32>) {
  %o = algebra.exq %x
  algebra.return %o
}

// -----

// CHECK: a dim is expected: a number, a symbol, or an expression
algebra.graph @g (%x: !algebra.tensor<[4, ?], f32>) -> (!algebra.tensor<[4], f32>) {
  algebra.return %x
}

// -----

// CHECK: 'algebra.graph' op: @g: type !algebra.tensor<[M - 8], f32>: M - 8 is -4, but dims are at least 1
algebra.graph @g [M] where [M = 4]
    (%x: !algebra.tensor<[M - 8], f32>) -> (!algebra.tensor<[M - 8], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}
