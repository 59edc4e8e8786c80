// RUN: cleave-opt %s -p 'superoptimize,specialize{sizes="M=64 L=64 D=32"}' 2>&1 | filecheck %s

// Selections of one infinity by two masks go behind the exponential in any order, so that
// the last test finds graphs equal that have the masks in another order.

// CHECK-NOT: is dropped
// CHECK:     algebra.graph @masks_2
// CHECK-NOT: is dropped
algebra.graph @masks [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %mask: !algebra.tensor<[M, L], i1>)
    -> (!algebra.tensor<[M, D], f32>) {
  %none = algebra.constant -inf : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  %seen = algebra.select %mask, %qk, %none
  %causal = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %s = algebra.select %causal, %seen, %none
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  algebra.return %o
}
