// LayerNorm with scale and shift, the variance around the mean.
algebra.graph @layernorm [M, K]
    (%x: !algebra.tensor<[M, K], bf16>, %scale: !algebra.tensor<[K], bf16>,
     %shift: !algebra.tensor<[K], bf16>)
    -> (!algebra.tensor<[M, K], bf16>) {
  %count = algebra.constant K : !algebra.tensor<[], f32>
  %epsilon = algebra.constant 1.0e-05 : !algebra.tensor<[], f32>
  %sum = algebra.reduce_sum %x dim 1
  %mean = algebra.div %sum, %count
  %centered = algebra.sub %x, %mean
  %squares = algebra.square %centered
  %total = algebra.reduce_sum %squares dim 1
  %variance = algebra.div %total, %count
  %safe = algebra.add %variance, %epsilon
  %inverse = algebra.rsqrt %safe
  %normal = algebra.mul %centered, %inverse
  %scaled = algebra.mul %normal, %scale
  %o = algebra.add %scaled, %shift
  algebra.return %o
}
