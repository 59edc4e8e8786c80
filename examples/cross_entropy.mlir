// The last layer of a language model and its loss, without the logits in memory: the
// log-sum-exp of a row less the logit of its target, which is picked out by position.
algebra.graph @cross_entropy [M, V, D] where [M = 4096, V = 32768, D = 4096]
    (%x: !algebra.tensor<[M, D], f16>, %w: !algebra.tensor<[V, D], f16>,
     %target: !algebra.tensor<[M, 1], i32>)
    -> (!algebra.tensor<[M, 1], f32>) {
  %one = algebra.constant 1.0 : !algebra.tensor<[], f32>
  %position = algebra.iota dim 1 : !algebra.tensor<[1, V], i32>
  %column = algebra.cast %position to f32
  %wanted = algebra.cast %target to f32
  %difference = algebra.sub %column, %wanted
  %distance = algebra.abs %difference
  %miss = algebra.min %distance, %one
  %hit = algebra.sub %one, %miss
  %logits = algebra.matmul %x, %w transpose_rhs
  %hits = algebra.mul %logits, %hit
  %logit = algebra.reduce_sum %hits dim 1
  %m = algebra.reduce_max %logits dim 1
  %shifted = algebra.sub %logits, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 1
  %log = algebra.log %l
  %lse = algebra.add %m, %log
  %loss = algebra.sub %lse, %logit
  algebra.return %loss
}
