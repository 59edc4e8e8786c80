// RUN: cleave-opt %s -p substitute-facts --split-input-file | filecheck %s --match-full-lines
// RUN: cleave-opt %s -p substitute-facts --split-input-file | cleave-opt --split-input-file | filecheck %s --match-full-lines

// Types, dims among the properties, and what a pass has recorded. The fact about an
// unbound symbol that the user declared stays, also one that every size satisfies.

algebra.graph @graph [M, K, N, s] where [K = 4096, s = 4, s | K, N = 2 * M, N >= s, s | M, M >= 1]
    (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[s, M, N], f32>)
    attributes {reduced = [#algebra.dim<K floordiv s>], known = {fact = #algebra.fact<s | K>}} {
  %count = algebra.constant K : !algebra.tensor<[], f32>
  %xs = algebra.split %x dim 1 count s
  %ws = algebra.split %w dim 0 count s
  %o = algebra.matmul %xs, %ws
  %mean = algebra.div %o, %count
  algebra.return %mean
}

//      CHECK: builtin.module {
// CHECK-NEXT:   algebra.graph @graph [M] where [2 * M >= 4, 4 | M, M >= 1]
// CHECK-NEXT:       (%x: !algebra.tensor<[M, 4096], f16>, %w: !algebra.tensor<[4096, 2 * M], f16>)
// CHECK-NEXT:       -> (!algebra.tensor<[4, M, 2 * M], f32>)
// CHECK-NEXT:       attributes {reduced = [#algebra.dim<1024>], known = {fact = #algebra.fact<4 | 4096>}} {
// CHECK-NEXT:     %count = algebra.constant 4096 : !algebra.tensor<[], f32>
// CHECK-NEXT:     %xs = algebra.split %x dim 1 count 4 : !algebra.tensor<[4, M, 1024], f16>
// CHECK-NEXT:     %ws = algebra.split %w dim 0 count 4 : !algebra.tensor<[4, 1024, 2 * M], f16>
// CHECK-NEXT:     %o = algebra.matmul %xs, %ws : !algebra.tensor<[4, M, 2 * M], f32>
// CHECK-NEXT:     %mean = algebra.div %o, %count : !algebra.tensor<[4, M, 2 * M], f32>
// CHECK-NEXT:     algebra.return %mean
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Bounds, tmaps, masks and tails of a plan. M stays dynamic.

itgraph.plan @plan [M, L, BM, BL] where [L = 100, BM = 128, BL = 64]
    (%x: !algebra.tensor<[M, L], f16>) -> (!algebra.tensor<[M, 1], f32>) {
  %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
      ins (%tx = %x[i_M * BM, 0] tile [BM, L])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, 1], f32>) {
    %zero = algebra.constant 0.0 : !algebra.tensor<[BM, 1], f32>
    %l = itgraph.loop (j = 0 to min(L, (i_M + 1) * BM) ceildiv BL)
        ins (%part = %tx[0, j * BL] tile [BM, BL])
        state (%acc = sum %zero) {
      %mask = algebra.causal diagonal i_M * BM - j * BL : !algebra.tensor<[BM, BL], i1>
      %least = algebra.constant -inf : !algebra.tensor<[], f32>
      %s = algebra.select %mask, %part, %least
      %p = algebra.exp %s
      %inside = itgraph.tail %p dim 1 limit L - j * BL fill 0.0
      %sum = algebra.reduce_sum %inside dim 1
      itgraph.next %sum
    }
    itgraph.yield %l
  }
  itgraph.return %o
}

//      CHECK: builtin.module {
// CHECK-NEXT:   itgraph.plan @plan [M]
// CHECK-NEXT:       (%x: !algebra.tensor<[M, 100], f16>)
// CHECK-NEXT:       -> (!algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:     %o = itgraph.kernel (i_M = 0 to M ceildiv 128)
// CHECK-NEXT:         ins (%tx = %x[128 * i_M, 0] tile [128, 100])
// CHECK-NEXT:         outs ([128 * i_M, 0] of !algebra.tensor<[M, 1], f32>) {
// CHECK-NEXT:       %zero = algebra.constant 0.0 : !algebra.tensor<[128, 1], f32>
// CHECK-NEXT:       %l = itgraph.loop (j = 0 to min(128 * i_M + 128, 100) ceildiv 64)
// CHECK-NEXT:           ins (%part = %tx[0, 64 * j] tile [128, 64])
// CHECK-NEXT:           state (%acc = sum %zero) {
// CHECK-NEXT:         %mask = algebra.causal diagonal 128 * i_M - 64 * j : !algebra.tensor<[128, 64], i1>
// CHECK-NEXT:         %least = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:         %s = algebra.select %mask, %part, %least : !algebra.tensor<[128, 64], f32>
// CHECK-NEXT:         %p = algebra.exp %s : !algebra.tensor<[128, 64], f32>
// CHECK-NEXT:         %inside = itgraph.tail %p dim 1 limit 100 - 64 * j fill 0.0 : !algebra.tensor<[128, 64], f32>
// CHECK-NEXT:         %sum = algebra.reduce_sum %inside dim 1 : !algebra.tensor<[128, 1], f32>
// CHECK-NEXT:         itgraph.next %sum
// CHECK-NEXT:       }
// CHECK-NEXT:       itgraph.yield %l
// CHECK-NEXT:     }
// CHECK-NEXT:     itgraph.return %o
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Nothing is bound, and nothing changes; what is no graph and no plan is left alone.

algebra.graph @nothing_bound [M, s] where [s | M]
    (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  algebra.return %x
}
func.func @function()

//      CHECK: builtin.module {
// CHECK-NEXT:   algebra.graph @nothing_bound [M, s] where [s | M]
// CHECK-NEXT:       (%x: !algebra.tensor<[M], f32>)
// CHECK-NEXT:       -> (!algebra.tensor<[M], f32>) {
// CHECK-NEXT:     algebra.return %x
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @function() -> ()
// CHECK-NEXT: }
