// No reduction at all, three dims, two of them divided.
algebra.graph @elementwise_chain [A, B, C]
    (%x: !algebra.tensor<[A, B, C], f16>, %y: !algebra.tensor<[B, 1], bf16>,
     %z: !algebra.tensor<[], f32>)
    -> (!algebra.tensor<[A, B, C], f16>) {
  %a = algebra.mul %x, %y
  %b = algebra.tanh %a
  %c = algebra.max %b, %z
  %d = algebra.exp2 %c
  %e = algebra.sub %d, %b
  %f = algebra.gelu %e
  %o = algebra.abs %f
  algebra.return %o
}
