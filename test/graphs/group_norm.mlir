// Channels in groups, each normalized over its own channels and all of their pixels:
// reductions over two dims, twice, one behind the other.
algebra.graph @group_norm [B, G, C, P]
    (%x: !algebra.tensor<[B, G, C, P], f16>) -> (!algebra.tensor<[B, G, C, P], f16>) {
  %count = algebra.constant C * P : !algebra.tensor<[], f32>
  %eps = algebra.constant 1.0e-5 : !algebra.tensor<[], f32>
  %pixels = algebra.reduce_sum %x dim 3
  %sum = algebra.reduce_sum %pixels dim 2
  %mean = algebra.div %sum, %count
  %centered = algebra.sub %x, %mean
  %square = algebra.square %centered
  %squares = algebra.reduce_sum %square dim 3
  %spread = algebra.reduce_sum %squares dim 2
  %variance = algebra.div %spread, %count
  %above = algebra.add %variance, %eps
  %deviation = algebra.sqrt %above
  %y = algebra.div %centered, %deviation
  %half = algebra.cast %y to f16
  algebra.return %half
}
