// RUN: cleave-opt %s -p 'superoptimize{split=inputs}' | filecheck %s
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{counts=2,4 sizes="M=64 K=512"},partition-split' 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: cleave-opt %s -p 'superoptimize{split=inputs},specialize{counts=2,4 sizes="M=64 K=512"},partition-split' | cleave-opt -p 'superoptimize{split=inputs},specialize,partition-split' 2>&1 | filecheck %s --check-prefix=PIPELINE

// Of a graph that is split already the split stays; what is split is not split again, and
// the parts are not added up before their elements are.

algebra.graph @g [M, K, s] where [s | K]
    (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, 1], f32>) {
  %0 = algebra.split %x dim 1 count s
  %1 = algebra.reduce_sum %0 dim 2
  %2 = algebra.reduce_sum %1 dim 0
  %3 = algebra.reshape %2 to [M, 1]
  algebra.return %3
}

// CHECK:       algebra.graph @g [M, K, s] where [s | K]
// CHECK:           attributes {search = {candidates = 1 : i64, sums = "none"}}
// CHECK:       algebra.graph @g_1 [M, K, s] where [s | K]
// CHECK-NEXT:      (
// CHECK-NEXT:      ->
// CHECK-NEXT:      attributes {equals = @g} {
// CHECK-NEXT:    %0 = algebra.split %x dim 1 count s
// CHECK-NEXT:    %1 = algebra.reduce_sum %0 dim 2
// CHECK-NEXT:    %2 = algebra.reduce_sum %1 dim 0
// CHECK-NOT:   algebra.graph

// The original keeps its name, its split and its attributes; its copy is cut.
// PIPELINE:      algebra.graph @g [M, K, s] where [s | K, M = 64, K = 512]
// PIPELINE:          attributes {search
// PIPELINE:        algebra.split
// PIPELINE:      algebra.graph @g_1_s2_split [M, K, s] where [s | K, M = 64, K = 512, s = 2]
// PIPELINE:          attributes {kernel = {of = "g_1_s2", {{.*}}, equals = @g, tested = [{{{.*}}s = 2 : i64}]}}
// PIPELINE:      algebra.graph @g_1_s2_combine
// PIPELINE:          attributes {kernel = {of = "g_1_s2", {{.*}}, equals = @g, tested = [{{{.*}}s = 2 : i64}]}}
// PIPELINE:      algebra.graph @g_1_s4_split
// PIPELINE:      algebra.graph @g_1_s4_combine
// PIPELINE-NOT:  algebra.graph
