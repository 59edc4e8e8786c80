// RUN: cleave-opt %s -p 'superoptimize' | filecheck %s
// RUN: cleave-opt %s -p 'superoptimize,superoptimize' 2>&1 | filecheck %s --check-prefix=AGAIN

// Candidates get names that are free, also of those that the candidates of another graph
// would have. A graph that has candidates is not searched again.

algebra.graph @g [M, L, D, E]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[D, L], f16>,
     %v: !algebra.tensor<[L, E], f16>) -> (!algebra.tensor<[M, E], f16>) {
  %s = algebra.matmul %q, %k
  %o = algebra.matmul %s, %v
  algebra.return %o
}
algebra.graph @g_1 [M] (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}
algebra.graph @g_2_1 [M] (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %o = algebra.exp %x
  algebra.return %o
}

// CHECK:      algebra.graph @g [
// CHECK:      algebra.graph @g_2 [
// CHECK:          attributes {equals = @g}
// CHECK:      algebra.graph @g_3 [
// CHECK:          attributes {equals = @g, verified
// CHECK:      algebra.graph @g_1 [
// CHECK:      algebra.graph @g_1_1 [
// CHECK:          attributes {equals = @g_1}
// CHECK:      algebra.graph @g_2_1 [
// CHECK:      algebra.graph @g_2_1_1 [
// CHECK:          attributes {equals = @g_2_1}

// AGAIN:       warning: pass 'superoptimize': graph @g has candidates; not searched again
// AGAIN:       algebra.graph @g [
// AGAIN:       algebra.graph @g_2 [
// AGAIN:       algebra.graph @g_3 [
// AGAIN:       algebra.graph @g_1 [
// AGAIN:       algebra.graph @g_1_1 [
// AGAIN:       algebra.graph @g_2_1 [
// AGAIN:       algebra.graph @g_2_1_1 [
// AGAIN-NOT:   algebra.graph
