// RUN: not cleave-opt %s -p 'specialize' 2>&1 | filecheck %s
// RUN: not cleave-opt %s -p 'specialize{sizes="M=4 K=8"}' 2>&1 | filecheck %s --check-prefix=CONFLICT
// RUN: not cleave-opt %s -p 'specialize{sizes="M"}' 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: cleave-opt %s -p 'specialize{sizes="M=4"}' | filecheck %s --check-prefix=BOUND

// RUN: not cleave-opt %s -p 'specialize{sizes="Q=4"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not cleave-opt %s -p 'specialize{sizes="M:4"}' 2>&1 | filecheck %s --check-prefix=FORM

// UNKNOWN:  error: pass 'specialize': size for 'Q', which is no symbol of a graph (symbols: K, M)
// FORM:     error: pass 'specialize': size 'M:4' is not of the form SYMBOL or SYMBOL=SIZE
// CHECK:    error: pass 'specialize': symbol M of graph @exp has no size; state it as a fact or pass sizes="M=..."
// CONFLICT: error: pass 'specialize': symbol K of graph @exp is 16 by its facts, not 8
// SIZE:     error: pass 'specialize': 'M' is given no size
// BOUND:    algebra.graph @exp [M, K] where [K = 16, M = 4]
algebra.graph @exp [M, K] where [K = 16]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}
