// RUN: cleave-opt %s -p 'superoptimize{stats=true}' | filecheck %s
// RUN: cleave-opt %s -p 'superoptimize{graphs=1}' 2>&1 | filecheck %s --check-prefix=GRAPHS
// RUN: cleave-opt %s -p 'superoptimize{values=3}' 2>&1 | filecheck %s --check-prefix=VALUES
// RUN: cleave-opt %s -p 'superoptimize{split=inputs promising=2}' 2>&1 | filecheck %s --check-prefix=PROMISING
// RUN: cleave-opt %s -p 'superoptimize{extra=0 seed=5}' | filecheck %s --check-prefix=SEED

algebra.graph @chain [M, L, D, E]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[D, L], f16>,
     %v: !algebra.tensor<[L, E], f16>) -> (!algebra.tensor<[M, E], f16>) {
  %s = algebra.matmul %q, %k
  %o = algebra.matmul %s, %v
  algebra.return %o
}

// CHECK: attributes {search = {candidates = 2 : i64, sums = "none", statistics = {values = 13 : i64, useful = 3 : i64, evaluated = 14 : i64, pruned_by_class = {{[0-9]+}} : i64, pruned_by_dims = 0 : i64, undefined = 0 : i64, synonyms = 0 : i64, disagreeing = 0 : i64, useless = 0 : i64, milliseconds = {{[0-9]+}} : i64}}}

// GRAPHS: warning: pass 'superoptimize': graph @chain: stopped by graphs=1; keeps the 1 graph found
// GRAPHS: search = {candidates = 1 : i64, sums = "none", stopped_by = ["graphs=1"]}

// VALUES: warning: pass 'superoptimize': graph @chain: stopped by values=3; keeps the 1 graph found
// VALUES: search = {candidates = 1 : i64, sums = "none", stopped_by = ["values=3"]}
// VALUES: algebra.graph @chain_1 [M, L, D, E]
// VALUES: attributes {equals = @chain}

// Those that split nothing and D are of other kinds than those that split L.
// PROMISING: warning: pass 'superoptimize': graph @chain: keeps the 2 graphs of least work of every kind, and leaves out {{[0-9]+}} equal ones (promising=2)
// PROMISING: algebra.graph @chain_1 [M, L, D, E]
// PROMISING: algebra.graph @chain_2 [M, L, D, E]
// PROMISING: algebra.graph @chain_3
// PROMISING-NOT: algebra.graph

// SEED: algebra.graph @chain_2 [M, L, D, E]
// SEED: seeds = array<i64: 5, 6>
