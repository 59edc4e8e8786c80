// RUN: cleave-opt %s -p 'insert-casts,schedule-blocks{tile="H=1 M=128"},schedule-reductions{tile="L=128"},schedule-masks,plan-memory' -t tilelang | golden %S/causal.py

// Online softmax under a causal mask: the loop ends at the diagonal, and carries a
// reference by which it rescales what it has summed up.
algebra.graph @causal [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 64]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>,
     %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %scale = algebra.constant 0.125 : !algebra.tensor<[], f32>
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %scaled = algebra.mul %qk, %scale
  %s = algebra.select %mask, %scaled, %least
  %r = algebra.reference %s dim 2
  %d = algebra.sub %s, %r
  %p = algebra.exp %d
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}
