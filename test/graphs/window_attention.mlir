// A sliding window, and a bias that grows with the distance (iota).
algebra.graph @window_attention [M, L, D]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %mask = algebra.window diagonal L - M size 24 : !algebra.tensor<[M, L], i1>
  %row = algebra.iota dim 0 start L - M : !algebra.tensor<[M, 1], i32>
  %column = algebra.iota dim 1 : !algebra.tensor<[1, L], i32>
  %r = algebra.cast %row to f32
  %c = algebra.cast %column to f32
  %distance = algebra.sub %c, %r
  %slope = algebra.constant 0.0625 : !algebra.tensor<[], f32>
  %bias = algebra.mul %distance, %slope
  %qk = algebra.matmul %q, %k transpose_rhs
  %s = algebra.add %qk, %bias
  %seen = algebra.select %mask, %s, %least
  %p = algebra.exp %seen
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}
