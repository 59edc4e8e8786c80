// Columns are normalized by a sum over the rows, then rows are summed: the reduced dims
// of two reductions cross, so one has to be whole for each tile of the other.
algebra.graph @column_norm [B, M, N]
    (%x: !algebra.tensor<[B, M, N], f16>) -> (!algebra.tensor<[B, M, 1], f32>) {
  %e = algebra.exp %x
  %c = algebra.reduce_sum %e dim 1
  %n = algebra.div %e, %c
  %o = algebra.reduce_sum %n dim 2
  algebra.return %o
}
