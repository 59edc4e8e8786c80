// RUN: cleave-opt %s -p 'insert-casts,schedule-blocks{tile="M=64"},schedule-reductions{tile="L=64"},plan-memory' -t tilelang | golden %S/tail.py

// 64 does not divide 100. The sum is masked after the exponential, where a row loaded as
// zeros has become one of ones; the slices come from GMEM.
algebra.graph @tail [M, L] where [M = 4096, L = 100]
    (%x: !algebra.tensor<[M, L], f16>, %scale: !algebra.tensor<[1, 1], f32>)
    -> (!algebra.tensor<[M, L], f16>) {
  %s = algebra.mul %x, %scale
  %e = algebra.exp %s
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %e, %l
  algebra.return %o
}
