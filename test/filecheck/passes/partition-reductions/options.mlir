// RUN: cleave-opt %s -p 'partition-reductions{limit=1}' | filecheck %s --check-prefix=ONE
// RUN: cleave-opt %s -p 'partition-reductions{limit=0}' | filecheck %s --check-prefix=UNFUSED
// RUN: cleave-opt %s -p 'partition-reductions{unfused=false}' | filecheck %s --check-prefix=CUTS

// ONE:         algebra.graph @norm_cut1_0
// ONE:         algebra.graph @norm_cut1_1
// ONE-NOT:     algebra.graph @norm_cut
// ONE:         algebra.graph @norm_unfused_0
// UNFUSED-NOT: algebra.graph @norm_cut
// UNFUSED:     algebra.graph @norm_unfused_0
// CUTS:        algebra.graph @norm_cut2_1
// CUTS-NOT:    unfused
algebra.graph @norm [M, K, N] where [M = 256, K = 256, N = 256]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f16>) {
  %sum = algebra.reduce_sum %x dim 1
  %y = algebra.matmul %x, %w
  %o = algebra.div %y, %sum
  algebra.return %o
}
